import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort, listen } from '@workflow-service/testkit'

/** A server process as its clients see it, which dies and comes back at the same address. */
export interface Proxy {
  readonly url: string
  /** Open connections on which the browser has sent nothing, and how many such ones the service has closed. */
  readonly unused: { readonly open: number; readonly closed: number }
  /** Breaks every connection and refuses new ones. */
  die: () => Promise<void>
  comeBack: () => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

/** Forwards connections on a loopback port to the service. */
export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port: targetPort } = new URL(target)
  const sockets = new Set<Socket>()
  const unused = new Set<Socket>()
  let closedUnused = 0
  // Not one that an outgoing connection gets while the server is dead.
  const port = await freePort()
  let server: Server | undefined
  const comeBack = async () => {
    server = createServer((client) => {
      const upstream = connect(Number(targetPort), hostname)
      unused.add(client)
      client.once('data', () => unused.delete(client))
      client.once('end', () => unused.delete(client))
      upstream.once('end', () => (closedUnused += Number(unused.delete(client))))
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(from)
        from.on('error', () => to.destroy())
        from.on('close', () => {
          sockets.delete(from)
          to.destroy()
        })
        from.pipe(to)
      }
    })
    await listen(server, port)
  }
  const die = async () => {
    if (!server?.listening) return
    server.close()
    for (const socket of sockets) socket.destroy()
    await once(server, 'close')
  }
  await comeBack()
  return {
    url: `http://127.0.0.1:${port}`,
    get unused() {
      return { open: unused.size, closed: closedUnused }
    },
    die,
    comeBack,
    [Symbol.asyncDispose]: die,
  }
}
