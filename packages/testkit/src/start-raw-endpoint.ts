import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

/** When the handler is called, and how the endpoint is reached. */
export interface RawEndpointOptions {
  /** `request` (default): when a whole HTTP request has come. `connect`: at once, before a byte. */
  when?: 'request' | 'connect'
  tls?: { key: string; cert: string }
}

/** A server below HTTP, for answers that no HTTP server would give. */
export interface RawEndpoint {
  /** Without a slash at the end. */
  url: string
  port: number
  /** What each connection has sent so far. */
  received: Buffer[]
  close: () => Promise<void>
}

/**
 * Starts a server on 127.0.0.1 whose handler writes bytes as it likes. Sockets that the handler leaves open are closed
 * by `close`; timers of its own should be `unref`ed.
 */
export async function startRawEndpoint(
  handler: (socket: Socket, requestBytes: Buffer) => void | Promise<void>,
  { when = 'request', tls }: RawEndpointOptions = {},
): Promise<RawEndpoint> {
  const received: Buffer[] = []
  const sockets = new Set<Socket>()
  const accept = (socket: Socket) => {
    let bytes = Buffer.alloc(0)
    const index = received.push(bytes) - 1
    let handled = when === 'connect'
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      received[index] = bytes
      if (handled || !isWhole(bytes)) return
      handled = true
      void handler(socket, bytes)
    })
    if (handled) void handler(socket, Buffer.alloc(0))
  }
  const server = tls ? createTlsServer(tls, accept) : createServer(accept)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    received,
    async close() {
      if (!server.listening) return
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

function isWhole(bytes: Buffer): boolean {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = bytes.subarray(0, end).toString('latin1')
  const length = /^content-length:\s*(\d+)/im.exec(head)?.[1]
  return bytes.length - end - 4 >= Number(length ?? 0)
}
