import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HttpServerOptions {
  host: string
  /** 0 takes any free port. */
  port: number
  /** How long a request's headers, and the whole request, may take to arrive. Defaults 10,000 and 15,000. */
  headersTimeoutMs?: number
  requestTimeoutMs?: number
  /** How long an idle connection is kept. Default 5,000. */
  keepAliveTimeoutMs?: number
}

/** A listening HTTP server that can be closed without cutting an answer off. */
export interface HttpServer {
  readonly server: Server
  /** The port that it listens on. */
  readonly port: number
  /** Takes no new connection, lets requests under way end for up to `graceMs`, then cuts what is left. Safe to repeat. */
  close(graceMs?: number): Promise<void>
}

/** Listens, and rejects with a clear error when the port is taken or the host is not ours. */
export async function startHttpServer(listener: RequestListener, options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer(
    {
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 15_000,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 5_000,
      connectionsCheckingInterval: 1_000,
      noDelay: true,
    },
    listener,
  )
  await listen(server, options)
  let closing: Promise<void> | undefined
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close: (graceMs = 10_000) => (closing ??= closeGracefully(server, graceMs)),
  }
}

async function listen(server: Server, { host, port }: HttpServerOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (error: NodeJS.ErrnoException) => {
    reject(
      error.code === 'EADDRINUSE' ? new Error(`Port ${port} is taken: stop what uses it, or set another PORT.`) : error,
    )
  })
  server.listen(port, host, resolve)
  await promise
}

async function closeGracefully(server: Server, graceMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => server.closeAllConnections(), graceMs)
  server.close(() => resolve())
  server.closeIdleConnections()
  await promise
  clearTimeout(timer)
}
