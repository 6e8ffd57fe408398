import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { listen } from './loopback-server.ts'

export interface RawEndpointOptions {
  /**
   * When to call the handler: after a complete HTTP request, or at once when a client connects.
   * @default 'request'
   */
  when?: 'request' | 'connect'
  tls?: { key: string; cert: string }
}

/**
 * Starts a TCP or TLS server on 127.0.0.1 whose handler writes the bytes itself. `close` closes the sockets that the
 * handler leaves open.
 */
export async function startRawEndpoint(
  handler: (socket: Socket, requestBytes: Buffer) => void | Promise<void>,
  { when = 'request', tls }: RawEndpointOptions = {},
) {
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
      if (handled || !isComplete(bytes)) return
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
  const port = await listen(server)
  return {
    /** Without a trailing slash. */
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    /** The bytes received so far, one buffer for each connection. */
    received,
    async close() {
      if (!server.listening) return
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

function isComplete(bytes: Buffer): boolean {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = bytes.subarray(0, end).toString('latin1')
  const length = /^content-length:\s*(\d+)/im.exec(head)?.[1]
  return bytes.length - end - 4 >= Number(length ?? 0)
}
