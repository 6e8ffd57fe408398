import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

interface Connection {
  isSilent: boolean
  isOpen: boolean
}

/** A TCP proxy in front of the broker. It can stop forwarding while every connection stays open. */
export class SilencingProxy {
  readonly #url: URL
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #connections: Connection[] = []
  /** Whether new connections forward nothing. */
  isSilent = false

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
    for (const connection of this.#connections) connection.isSilent = true
  }

  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }

  #accept(client: Socket, broker: Socket): void {
    const connection: Connection = { isSilent: this.isSilent, isOpen: true }
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
    client.on('data', (bytes) => void (connection.isSilent || broker.write(bytes)))
    broker.on('data', (bytes) => void (connection.isSilent || client.write(bytes)))
    broker.on('close', () => {
      if (!connection.isSilent) client.destroy()
    })
  }
}
