import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '@workflow-service/dev-servers'
import { listen } from './loopback-server.ts'

/** A server process as its clients see it, which dies and comes back at the same address. */
export type Proxy = Awaited<ReturnType<typeof startProxy>>

/** Forwards connections on a loopback port to a server. */
export async function startProxy(target: string) {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    const end = () => [client, upstream].forEach((socket) => socket.destroy())
    sockets.add(client)
    client.on('error', end).on('close', end).pipe(upstream)
    upstream.on('error', end).on('close', end).pipe(client)
  })
  // Not one that an outgoing connection gets while the server is dead.
  const ownPort = await freePort()
  const comeBack = async () => void (await listen(server, ownPort))
  const die = async () => {
    if (!server.listening) return
    server.close()
    for (const socket of sockets) socket.destroy()
    await once(server, 'close')
  }
  await comeBack()
  return { url: `http://127.0.0.1:${ownPort}`, die, comeBack, [Symbol.asyncDispose]: die }
}
