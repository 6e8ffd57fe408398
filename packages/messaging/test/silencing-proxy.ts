import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { listen } from '@workflow-service/testkit'

export type SilencingProxy = Awaited<ReturnType<typeof startSilencingProxy>>

/** Starts a TCP proxy in front of the broker. It can stop forwarding while every connection stays open. */
export async function startSilencingProxy(brokerUrl: string) {
  const url = new URL(brokerUrl)
  const { port, hostname } = url
  const sockets = new Set<Socket>()
  const clients: Socket[] = []
  const connections: { isSilent: boolean; isOpen: boolean }[] = []
  const server = createServer((client) => {
    const broker = connect(Number(port), hostname)
    const connection = { isSilent: proxy.isSilent, isOpen: true }
    connections.push(connection)
    clients.push(client)
    for (const socket of [client, broker]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => void (connection.isSilent || broker.write(bytes)))
    broker.on('data', (bytes) => void (connection.isSilent || client.write(bytes)))
    client.on('close', () => {
      connection.isOpen = false
      broker.destroy()
    })
    broker.on('close', () => void (connection.isSilent || client.destroy()))
  })
  url.host = `127.0.0.1:${await listen(server)}`
  // Heartbeats would detect the silence too.
  url.searchParams.set('heartbeat', '0')
  const proxy = {
    url: url.href,
    /** Whether new connections forward nothing. */
    isSilent: false,
    /** Whether each connection, oldest first, is open on the client's side. */
    get open() {
      return connections.map(({ isOpen }) => isOpen)
    },
    /** Forwards what clients send from now on only after the release. */
    hold: () => clients.forEach((client) => client.pause()),
    release: () => clients.forEach((client) => client.resume()),
    /** Stops forwarding on all existing connections. */
    silence: () => connections.forEach((connection) => (connection.isSilent = true)),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
  return proxy
}
