import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createTestBroker, type TestBroker, waitUntil } from '@workflow-service/testkit'
import type { ChannelModel } from 'amqplib'
import { openConnection, type RecoveringConnection } from '../src/connection.ts'

/** How a connection passes the broker's bytes on. */
type Passage = 'open' | 'first_frame_only' | 'silent'

/** Stands before the broker, and can let it fall silent with every connection left open. */
class SilencingProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connections: { passage: Passage; isOpen: boolean }[] = []
  /** Of the connections to come. */
  passage: Passage = 'open'

  constructor(broker: URL) {
    this.#server = createServer((client) => this.#accept(client, connect(Number(broker.port), broker.hostname)))
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** Which of its connections, oldest first, the client has left open. */
  get open(): boolean[] {
    return this.#connections.map(({ isOpen }) => isOpen)
  }

  /** Passes nothing more on over the connections that exist. */
  silence(): void {
    for (const connection of this.#connections) connection.passage = 'silent'
  }

  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }

  #accept(client: Socket, broker: Socket): void {
    const connection = { passage: this.passage, isOpen: true }
    this.#connections.push(connection)
    for (const socket of [client, broker]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    }
    client.on('close', () => {
      connection.isOpen = false
      broker.destroy()
    })
    client.on('data', (bytes) => {
      if (connection.passage !== 'silent') broker.write(bytes)
    })
    broker.on('data', (bytes) => {
      if (connection.passage !== 'silent') client.write(bytes)
      if (connection.passage === 'first_frame_only') connection.passage = 'silent'
    })
    broker.on('close', () => {
      if (connection.passage === 'open') client.destroy()
    })
  }
}

describe('a connection to a broker', () => {
  let broker: TestBroker
  let proxy: SilencingProxy
  let url: string
  let connection: RecoveringConnection
  beforeAll(async () => {
    broker = await createTestBroker()
  }, 180_000)
  afterAll(() => broker.drop())
  beforeEach(async () => {
    proxy = new SilencingProxy(new URL(broker.url))
    const own = new URL(broker.url)
    own.host = `127.0.0.1:${await proxy.listen()}`
    // No heartbeats, which would notice it later.
    own.searchParams.set('heartbeat', '0')
    url = own.href
  })
  afterEach(async () => {
    await connection.close()
    await proxy.close()
  })

  const open = (setUp: (model: ChannelModel) => Promise<void>) => {
    const states: string[] = []
    connection = openConnection({ url, name: 'test', setUp, onState: (state) => states.push(state) })
    return states
  }

  test.each([
    ['that is silent from the start', 'silent'],
    ['that falls silent in the middle of the handshake', 'first_frame_only'],
  ] as const)('%s is given up, and the next one works', async (_when, passage) => {
    proxy.passage = passage
    const states = open(async () => {})
    await waitUntil(() => proxy.open.length === 1)
    proxy.passage = 'open'
    await waitUntil(() => states.includes('up'))
    expect(states).toEqual(['down', 'up'])
    expect(proxy.open).toEqual([false, true])
  })

  test('that falls silent while the channels are set up is given up, and the next one works', async () => {
    let setUps = 0
    const states = open(async (model) => {
      if (++setUps === 1) proxy.silence()
      await model.createChannel()
    })
    await waitUntil(() => states.includes('up'))
    expect(states).toEqual(['down', 'up'])
    expect(proxy.open).toEqual([false, true])
  })

  test('that refuses what the set-up asks for is given up, and the next one works', async () => {
    let setUps = 0
    const states = open(async (model) => {
      const channel = await model.createChannel()
      channel.on('error', () => {})
      if (++setUps === 1) await channel.checkQueue('no such queue')
    })
    await waitUntil(() => states.includes('up'))
    expect(states).toEqual(['down', 'up'])
  })

  test('that has fallen silent is closed without its answer', async () => {
    const states = open(async () => {})
    await waitUntil(() => states.includes('up'))
    proxy.silence()
    await connection.close()
    await waitUntil(() => !proxy.open.includes(true))
    expect(states).toEqual(['up'])
  })
})
