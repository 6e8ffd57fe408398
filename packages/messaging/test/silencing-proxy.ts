import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** How a connection passes the broker's bytes on. */
type Passage = 'open' | 'first_frame_only' | 'silent' | 'held'

interface Connection {
  passage: Passage
  isOpen: boolean
  readonly held: Buffer[]
  readonly broker: Socket
}

/** Stands before the broker, and can let it fall silent, or slow to answer, with every connection left open. */
export class SilencingProxy {
  readonly #url: URL
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connections: Connection[] = []
  /** Of the connections to come. */
  passage: Passage = 'open'

  constructor(brokerUrl: string) {
    this.#url = new URL(brokerUrl)
    const { port, hostname } = this.#url
    this.#server = createServer((client) => this.#accept(client, connect(Number(port), hostname)))
  }

  /** Resolves with the URL to connect to: the broker's, without heartbeats, which would notice a silence later. */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const own = new URL(this.#url)
    own.host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    own.searchParams.set('heartbeat', '0')
    return own.href
  }

  /** Which of its connections, oldest first, the client has left open. */
  get open(): boolean[] {
    return this.#connections.map(({ isOpen }) => isOpen)
  }

  /** Passes nothing more on over the connections that exist. */
  silence(): void {
    for (const connection of this.#connections) connection.passage = 'silent'
  }

  /** Passes on what connections that are held have been sent so far, and all that comes. */
  release(): void {
    for (const connection of this.#connections) {
      if (connection.passage !== 'held') continue
      connection.passage = 'open'
      for (const bytes of connection.held.splice(0)) connection.broker.write(bytes)
    }
  }

  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }

  #accept(client: Socket, broker: Socket): void {
    const connection: Connection = { passage: this.passage, isOpen: true, held: [], broker }
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
      if (connection.passage === 'held') connection.held.push(bytes)
      else if (connection.passage !== 'silent') broker.write(bytes)
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
