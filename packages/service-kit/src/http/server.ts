import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError, serviceUnavailable } from './errors.ts'
import { toErrorResponse, writeError } from './errors.ts'
import { newRequestId } from './request-id.ts'
import { SECURITY_HEADERS } from './write-json.ts'

export interface HttpServerOptions {
  host: string
  /** 0 takes any free port. */
  port: number
  /** How long a request's headers, and the whole request, may take to arrive. Defaults 10,000 and 15,000. */
  headersTimeoutMs?: number
  requestTimeoutMs?: number
  /** How long an idle connection is kept. Default 5,000. */
  keepAliveTimeoutMs?: number
  /** Requests under way at once; one more is answered 503. Default: no limit. */
  maxRequestsInFlight?: number
  /** Hears of each request that the server itself refused, before the listener saw it. */
  onRefusal?: (error: ApiError, requestId: string) => void
}

/** A listening HTTP server that can be closed without cutting an answer off. */
export interface HttpServer {
  readonly server: Server
  readonly port: number
  /** The server's address as seen from this machine, without a slash at the end. */
  readonly url: string
  /** Requests whose answer has not ended. */
  readonly inFlight: number
  /** Takes no new connection, lets requests under way end for up to `graceMs`, then cuts what is left. Safe to repeat. */
  close(graceMs?: number): Promise<void>
}

/** A request's line and headers together, in bytes. */
const HEADERS_MAX_BYTES = 16 * 1024
/** How long a connection whose request was refused is still read from: closing with bytes unread takes the answer away. */
const LINGER_MS = 1_000

/**
 * Listens, and rejects with a clear error when the port is taken or the host is not ours. Every answer is in the contract's
 * error shape and with its statuses, also to what never becomes a request: bad syntax, headers too large (Node says 431),
 * too slow (408), CONNECT, an unknown expectation (417).
 */
export async function startHttpServer(listener: RequestListener, options: HttpServerOptions): Promise<HttpServer> {
  const underWay = new Set<ServerResponse>()
  const answers = new WeakMap<Duplex, ServerResponse>()
  let closing: Promise<void> | undefined
  const { maxRequestsInFlight = Number.POSITIVE_INFINITY, onRefusal = () => {} } = options

  const refuse = (res: ServerResponse, error: ApiError): void => {
    const requestId = newRequestId()
    onRefusal(error, requestId)
    writeError(res, error, requestId, ['Connection', 'close'])
  }
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    answers.set(req.socket, res)
    const isOverloaded = underWay.size >= maxRequestsInFlight
    underWay.add(res)
    res.once('close', () => underWay.delete(res))
    if (closing) res.setHeader('Connection', 'close')
    if (req.headers.host === undefined && req.httpVersion === '1.1') {
      refuse(res, new ApiError('invalid_request', 'The Host header is missing.'))
    } else if (isOverloaded) {
      refuse(res, serviceUnavailable('Too many requests are under way; try again in a moment.'))
    } else {
      listener(req, res)
    }
  }

  const server = createServer(
    {
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 15_000,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 5_000,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: HEADERS_MAX_BYTES,
      noDelay: true,
      // Checked in `handle`: Node's own answer has no body.
      requireHostHeader: false,
    },
    handle,
  )
  // Whatever is expected beside 100-continue is ignored, as RFC 9110 allows.
  server.on('checkExpectation', handle)
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    answerRaw(socket, new ApiError('not_found', 'CONNECT is not offered here.'), onRefusal)
  })
  server.on('clientError', (fault: NodeJS.ErrnoException, socket: Socket) => {
    const res = answers.get(socket)
    if (fault.code === 'ECONNRESET' || !socket.writable) socket.destroy(fault)
    else if (!res || (res.req.complete && res.writableFinished)) answerRaw(socket, describeFault(fault), onRefusal)
    // The fault is the next request's: the one before is answered as if nothing had come after it.
    else if (res.req.complete) res.once('finish', () => answerRaw(socket, describeFault(fault), onRefusal))
    else if (res.headersSent) socket.destroy(fault)
    else {
      refuse(res, describeFault(fault))
      res.once('finish', () => closeSoon(socket))
    }
  })

  await listen(server, options)
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `http://${toReachableHost(options.host)}:${port}`,
    get inFlight() {
      return underWay.size
    },
    close: (graceMs = 10_000) => (closing ??= closeGracefully(server, underWay, graceMs)),
  }
}

function describeFault({ code }: NodeJS.ErrnoException): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('invalid_request', `The headers are larger than ${HEADERS_MAX_BYTES / 1024} KiB.`)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('invalid_request', 'The request took too long to arrive.')
    default:
      return new ApiError('invalid_request', 'The request is not valid HTTP/1.1.')
  }
}

/** An answer on a connection where Node has made no response object. */
function answerRaw(socket: Duplex, error: ApiError, onRefusal: (error: ApiError, requestId: string) => void): void {
  if (!socket.writable) return
  const requestId = newRequestId()
  onRefusal(error, requestId)
  const body = JSON.stringify(toErrorResponse(error, requestId))
  const headers = {
    ...SECURITY_HEADERS,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
    Connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.on('error', () => {})
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n${body}`)
  closeSoon(socket)
}

function closeSoon(socket: Duplex): void {
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
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

function toReachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

async function closeGracefully(server: Server, underWay: ReadonlySet<ServerResponse>, graceMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => server.closeAllConnections(), graceMs)
  server.close(() => resolve())
  server.closeIdleConnections()
  // Their connections would stay open for the next request otherwise.
  for (const res of underWay) if (!res.headersSent) res.setHeader('Connection', 'close')
  await promise
  clearTimeout(timer)
}
