import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * What a connection forwards. `first_frame_only`: the broker's first frame. `silent`: nothing.
 */
type Forwarding = 'all' | 'first_frame_only' | 'silent'

interface Connection {
  forwarding: Forwarding
  isOpen: boolean
}

/** A TCP proxy in front of the broker. It can stop forwarding while every connection stays open. */
export class SilencingProxy {
  readonly #url: URL
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connections: Connection[] = []
  /** Applies to new connections. */
  forwarding: Forwarding = 'all'

  constructor(brokerUrl: string) {
    this.#url = new URL(brokerUrl)
    const { port, hostname } = this.#url
    this.#server = createServer((client) => this.#accept(client, connect(Number(port), hostname)))
  }

  /** Resolves to the URL to connect to. It turns heartbeats off, which would detect the silence too. */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const own = new URL(this.#url)
    own.host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    own.searchParams.set('heartbeat', '0')
    return own.href
  }

  /** Whether each connection, oldest first, is open on the client's side. */
  get open(): boolean[] {
    return this.#connections.map(({ isOpen }) => isOpen)
  }

  /** Stops forwarding on all existing connections. */
  silence(): void {
    for (const connection of this.#connections) connection.forwarding = 'silent'
  }

  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }

  #accept(client: Socket, broker: Socket): void {
    const connection: Connection = { forwarding: this.forwarding, isOpen: true }
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
      if (connection.forwarding !== 'silent') broker.write(bytes)
    })
    broker.on('data', (bytes) => {
      if (connection.forwarding !== 'silent') client.write(bytes)
      if (connection.forwarding === 'first_frame_only') connection.forwarding = 'silent'
    })
    broker.on('close', () => {
      if (connection.forwarding === 'all') client.destroy()
    })
  }
}
