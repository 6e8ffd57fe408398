import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { SESSION_MESSAGE_TYPE, SESSIONS_DEAD_LETTER_QUEUE, SESSIONS_QUEUE } from '@workflow-service/contract'
import { callManagementApi } from '@workflow-service/dev-servers'
import {
  createTestBroker,
  freePort,
  type PrivateRabbitMq,
  startRabbitMq,
  type TestBroker,
  waitUntil,
} from '@workflow-service/testkit'
import { type Channel, type ChannelModel, connect } from 'amqplib'
import { connectRabbitMq, type SessionQueue } from '../src/index.ts'
import { SilencingProxy } from './silencing-proxy.ts'

const message = { session_id: '0190f6a4-5f4e-7cc2-9d4a-5b8f3a3b2c1d' }

describe('connectRabbitMq', () => {
  let broker: TestBroker
  let queue: SessionQueue
  let admin: { model: ChannelModel; channel: Channel }

  const open = async (queueType: 'quorum' | 'classic' = 'classic') => {
    queue = connectRabbitMq({ url: broker.url, queueType, connectionName: 'test' })
    await waitUntil(async () => queue.depth())
  }

  beforeEach(async () => {
    broker = await createTestBroker()
    const model = await connect(broker.url)
    admin = { model, channel: await model.createChannel() }
  }, 180_000)
  afterEach(async () => {
    await queue.close()
    await admin.model.close()
    await broker.drop()
  })

  test('publishes a persistent JSON message with its type', async () => {
    await open()
    expect(await queue.publish(message)).toBe('confirmed')
    const found = await admin.channel.get(SESSIONS_QUEUE, { noAck: true })
    expect(found).toMatchObject({
      properties: { deliveryMode: 2, type: SESSION_MESSAGE_TYPE, contentType: 'application/json' },
    })
  })

  test('of several hosts, connects to one that answers, whichever it tries first', async () => {
    const { host } = new URL(broker.url)
    const url = broker.url.replace(host, `${host},127.0.0.1:${await freePort()}`)
    for (let attempt = 0; attempt < 4; attempt += 1) {
      queue = connectRabbitMq({ url, queueType: 'classic', connectionName: 'test' })
      await waitUntil(async () => queue.depth())
      expect(await queue.publish(message)).toBe('confirmed')
      if (attempt < 3) await queue.close()
    }
  })

  test('a message that no queue takes is `failed`, although the broker confirms it', async () => {
    await open()
    await admin.channel.deleteQueue(SESSIONS_QUEUE)
    expect(await queue.publish(message)).toBe('failed')
  })

  test('continues to consume after its queue was deleted', async () => {
    await open()
    let received = 0
    await queue.consume(async () => void received++, { prefetch: 1 })
    await queue.publish(message)
    await waitUntil(() => received === 1)
    await admin.channel.deleteQueue(SESSIONS_QUEUE)
    await waitUntil(async () => (await queue.publish(message)) === 'confirmed')
    await waitUntil(() => received === 2)
    expect(await queue.depth()).toEqual({ ready: 0, dead: 0 })
  })

  test('asks the broker for a heartbeat every 5 s', async () => {
    await open()
    expect(await waitUntil(() => findConnection(broker, 'test publisher'))).toMatchObject({ timeout: 5 })
  })

  test('uses a queue that exists with other arguments as it is', async () => {
    await admin.channel.assertQueue(SESSIONS_QUEUE, { durable: true })
    await open('quorum')
    let received = 0
    await queue.consume(async () => void received++, { prefetch: 1 })
    expect(await queue.publish(message)).toBe('confirmed')
    await waitUntil(() => received === 1)
  })

  test('keeps the reason of a dead letter that arrives before the publishing connection is up', async () => {
    const proxy = new SilencingProxy(broker.url)
    const url = await proxy.listen()
    let letters = 0
    proxy.forwarding = 'held'
    queue = connectRabbitMq({ url, queueType: 'classic', connectionName: 'test', onDeadLetter: () => letters++ })
    await waitUntil(() => proxy.open.length === 1)
    proxy.forwarding = 'all'
    await queue.consume(async () => {}, { prefetch: 1 })
    await waitUntil(() => proxy.open.length === 2)
    try {
      // A message sent before the consumer has declared the queue is lost, so this sends until one arrives.
      await waitUntil(() => admin.channel.sendToQueue(SESSIONS_QUEUE, Buffer.from('{"session_id":')) && letters > 0)
      proxy.release()
      const found = await waitUntil(() => admin.channel.get(SESSIONS_DEAD_LETTER_QUEUE, { noAck: true }))
      expect(found && found.properties.headers).toMatchObject({
        'x-dead-letter-reason': 'not_json',
        'x-dead-letter-detail': expect.any(String),
      })
    } finally {
      await queue.close()
      await proxy.close()
    }
  })
})

describe('connectRabbitMq when the broker fails', () => {
  const FIRST_CONNECT = { timeoutMs: 40_000 }
  let broker: PrivateRabbitMq
  let queues: SessionQueue[]
  beforeAll(async () => {
    broker = await startRabbitMq()
    // In virtual hosts of their own: an existing classic queue would be used as it is, and its consumers share
    // messages.
    const all = { configure: '.*', write: '.*', read: '.*' }
    for (const name of ['quorum', 'later']) {
      await callManagementApi(broker.managementUrl, 'PUT', `/api/vhosts/${name}`)
      await callManagementApi(broker.managementUrl, 'PUT', `/api/permissions/${name}/guest`, all)
    }
  }, 180_000)
  afterAll(() => broker.stop())
  beforeEach(() => {
    queues = []
  })
  afterEach(async () => {
    await Promise.all(queues.map((queue) => queue.close()))
  })

  const open = (queueType: 'quorum' | 'classic', url = broker.url) => {
    const states: string[] = []
    const onState = (role: string, state: string) => void states.push(`${role} ${state}`)
    const queue = connectRabbitMq({ url, queueType, connectionName: 'test', onState })
    queues.push(queue)
    return { queue, states }
  }

  test('notices a frozen broker by its heartbeats, and closes without its answer', async () => {
    // The default of 5 s would take 15 s here.
    const { queue, states } = open('classic', `${broker.url}?heartbeat=1`)
    await queue.consume(async () => {}, { prefetch: 1 })
    await waitUntil(() => states.includes('consumer up') && states.includes('publisher up'), FIRST_CONNECT)
    broker.pause()
    try {
      expect(await queue.publish(message)).toBe('failed')
      // The consumer sends nothing itself, so it can notice the silence only by the missing heartbeats.
      await waitUntil(() => states.includes('consumer down') && states.includes('publisher down'), {
        timeoutMs: 30_000,
      })
      await queue.close()
    } finally {
      broker.resume()
    }
  }, 90_000)

  test('reconnects after a kill, and connects to a broker that starts later; a quorum queue that is unusable then delays neither requests nor closing', async () => {
    const { queue } = open('classic')
    let received = 0
    await queue.consume(async () => void received++, { prefetch: 1 })
    const { queue: quorumQueue } = open('quorum', `${broker.url}/quorum`)
    const quorumConsumer = await quorumQueue.consume(async () => {}, { prefetch: 1 })
    await waitUntil(async () => queue.depth(), FIRST_CONNECT)
    await waitUntil(async () => quorumQueue.depth(), FIRST_CONNECT)

    await broker.kill()
    await waitUntil(async () => (await queue.publish(message)) === 'failed')
    const { queue: laterQueue, states } = open('classic', `${broker.url}/later`)
    let receivedLater = 0
    await laterQueue.consume(async () => void receivedLater++, { prefetch: 1 })
    await waitUntil(() => states.includes('publisher down') && states.includes('consumer down'))
    expect(await laterQueue.publish(message)).toBe('failed')
    await expect(laterQueue.ping()).rejects.toThrow('not connected')

    await broker.restart()
    await waitUntil(async () => (await queue.publish(message)) === 'confirmed', FIRST_CONNECT)
    await waitUntil(() => received > 0, FIRST_CONNECT)
    await waitUntil(async () => (await laterQueue.publish(message)) === 'confirmed', FIRST_CONNECT)
    await waitUntil(() => receivedLater > 0, FIRST_CONNECT)

    // Whether the quorum queue recovers depends on the broker's version.
    await waitUntil(async () => quorumQueue.ping().then(() => true), FIRST_CONNECT)
    await quorumConsumer.close()
    expect(['confirmed', 'failed']).toContain(
      await Promise.race([quorumQueue.publish(message), quorumQueue.close().then(() => 'failed' as const)]),
    )
  }, 120_000)
})

/** A connection as the management API shows it. */
interface ListedConnection {
  /** The heartbeat interval in seconds. */
  timeout?: number
  client_properties: { connection_name?: string }
}

async function findConnection(
  { managementUrl, virtualHost }: TestBroker,
  name: string,
): Promise<ListedConnection | undefined> {
  const answer = await callManagementApi(managementUrl, 'GET', `/api/vhosts/${virtualHost}/connections`)
  const connections = (await answer.json()) as ListedConnection[]
  return connections.find((connection) => connection.client_properties.connection_name === name)
}
