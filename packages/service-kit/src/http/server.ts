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
import { createTurns } from '../turns.ts'
import { responseState, onceClosed } from './response-state.ts'
import { ApiError, serviceUnavailable, toErrorResponse, writeError } from './errors.ts'
import { newRequestId, requestIdFrom } from './request-id.ts'
import { closeUnreadResponses, UNREAD_LIMITS, type UnreadLimits } from './unread-responses.ts'
import { SECURITY_HEADERS } from './write-json.ts'

export interface HttpServerOptions {
  host: string
  /** 0 for any free port. */
  port: number
  /** The setting that has the port. Default: `PORT`. */
  portSetting?: string | undefined
  /** How long a request's headers, and the whole request, may take to arrive. Defaults: 10,000 and 15,000. */
  headersTimeoutMs?: number | undefined
  requestTimeoutMs?: number | undefined
  /** How long an idle connection is kept open. Default: 5,000. */
  keepAliveTimeoutMs?: number | undefined
  /** How often a caller that has closed its side is probed. Default: 100, since most responses are sent before. */
  probeMs?: number
  /** Limits of responses that callers do not read. Default: 32 MiB per key and 30 s. */
  unreadLimits?: UnreadLimits
  /** Called for each request that the server refuses before the listener sees it. */
  onRefusal?: (error: ApiError, requestId: string) => void
}

/** A listening HTTP server that can be closed without interrupting a response. */
export interface HttpServer {
  readonly port: number
  /** The server's address as seen from this machine, without a slash at the end. */
  readonly url: string
  /** Number of requests whose response has not ended; open streams do not count. */
  readonly inFlight: number
  /**
   * Asks callers from now on to open a new connection for their next request, by `Connection: close` in each response.
   */
  drain(): void
  /**
   * Accepts no new connection, ends the open streams, waits up to `graceMs` (default 10,000) for requests in flight,
   * then closes the remaining connections. Safe to call again.
   */
  close(graceMs?: number): Promise<void>
}

/** For the request line and the headers together. */
const MAX_HEADER_BYTES = 16 * 1024
/** The default of Node, which is half of what its documentation has as `maxHeadersCount`. */
const MAX_HEADERS = 1_000
/**
 * How long the server keeps a connection after a refusal: closing a socket with unread bytes makes TCP discard the
 * response.
 */
const LINGER_MS = 1_000
/**
 * A caller that reads its response while it sends stops within this time. Only then is the rest of its body read, for
 * the others.
 */
const LINGER_UNREAD_MS = 100
/**
 * So much of it is read. A caller that sends more than this and the buffers of the connection (1 MiB fits), and reads
 * nothing meanwhile, may see a reset in place of the response.
 */
const MAX_LINGER_BYTES = 64 * 1024
/** The rest of a body that is read and dropped for the sake of the connection. */
const MAX_DROPPED_BYTES = 64 * 1024

/**
 * Starts an HTTP server; rejects when it cannot listen, with a clear error if the port is taken. Also requests that
 * Node refuses itself get the contract's error shape and status: bad syntax, too large headers (Node: 431), too slow
 * requests (408), CONNECT.
 */
export async function startHttpServer(listener: RequestListener, options: HttpServerOptions): Promise<HttpServer> {
  const inFlight = new Set<ServerResponse>()
  const streams = new Set<ServerResponse>()
  const sockets = new Set<Socket>()
  const lastResponses = new WeakMap<Duplex, ServerResponse>()
  let closing: Promise<void> | undefined
  let isDraining = false
  const { onRefusal = () => {} } = options

  const refuse = (res: ServerResponse, error: ApiError): void => {
    const requestId = requestIdOf(res)
    onRefusal(error, requestId)
    writeError(res, error, requestId, ['Connection', 'close'])
  }
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    lastResponses.set(req.socket, res)
    inFlight.add(res)
    onceClosed(res, () => {
      inFlight.delete(res)
      streams.delete(res)
    })
    responseState(res).onStream = () => {
      inFlight.delete(res)
      if (closing) endStream(res)
      else streams.add(res)
    }
    if (isDraining) res.setHeader('Connection', 'close')
    if (mayHaveLargeBody(req)) closeAfterEarlyResponse(req, res)
    const target = toOriginForm(req.url ?? '')
    const problem = target === undefined ? NOT_HTTP : findHeadProblem(req)
    if (problem !== undefined) return refuse(res, new ApiError('invalid_request', problem))
    req.url = target
    listener(req, res)
  }

  const server = createServer(
    {
      headersTimeout: options.headersTimeoutMs ?? 10_000,
      requestTimeout: options.requestTimeoutMs ?? 15_000,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 5_000,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: MAX_HEADER_BYTES,
      noDelay: true,
      // `findHeadProblem` checks it: Node's own response has no body.
      requireHostHeader: false,
    },
    handle,
  )
  // Expectations other than 100-continue are ignored, as RFC 9110, section 10.1.1 allows.
  server.on('checkExpectation', handle)
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    writeRawError(socket, new ApiError('not_found', 'CONNECT is not offered here.'), onRefusal)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const res = lastResponses.get(socket)
    // For the log and the metrics, if its connection is closed without a response.
    if (res && !res.headersSent && !res.req.complete) res.statusCode = 400
    // Browsers open spare connections, and take what arrives on an unused one for the response to their next request.
    const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0
    if (isUnused || error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else if (!res || (res.req.complete && res.writableFinished)) writeRawError(socket, toRequestError(error), onRefusal)
    // The broken request follows one that is still being answered: that response comes first.
    else if (res.req.complete) res.once('finish', () => writeRawError(socket, toRequestError(error), onRefusal))
    else if (res.headersSent) socket.destroy()
    else {
      refuse(res, toRequestError(error))
      res.once('finish', () => closeSoon(socket))
    }
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  serveHalfClosed(server, options.probeMs ?? 100)
  await listen(server, options)
  const responses = () => [...streams, ...inFlight]
  server.once('close', closeUnreadResponses(responses, options.unreadLimits ?? UNREAD_LIMITS))
  const { port } = server.address() as AddressInfo
  const drain = (): void => {
    isDraining = true
    for (const res of [...inFlight, ...streams]) {
      if (!res.headersSent) res.setHeader('Connection', 'close')
      // Its caller would send the next request on the connection.
      else res.once('finish', () => res.req.socket.destroySoon())
    }
  }
  return {
    port,
    url: `http://${toReachableHost(options.host)}:${port}`,
    get inFlight() {
      return inFlight.size
    },
    drain,
    close: (graceMs = 10_000) => {
      drain()
      return (closing ??= closeGracefully(server, streams, sockets, graceMs))
    },
  }
}

/** The caller's id of a request that the application does not answer itself, or a new one. */
function requestIdOf({ req }: ServerResponse): string {
  return requestIdFrom(req.headers['x-request-id'])
}

function mayHaveLargeBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > MAX_DROPPED_BYTES
}

/**
 * Makes a response that begins before the body has arrived the last one of its connection, as RFC 9112, section 9.6
 * describes: to read and drop what may be megabytes would take time from the requests of others. The response is sent
 * with `Connection: close`, then the server's side is closed; the caller's side gets LINGER_MS.
 */
function closeAfterEarlyResponse(req: IncomingMessage, res: ServerResponse): void {
  const { socket } = req
  const writeHead = res.writeHead.bind(res) as (...values: unknown[]) => ServerResponse
  res.writeHead = (...values: unknown[]) => {
    if (!req.complete) {
      res.shouldKeepAlive = false
      // Node drops all of a body of which nothing was read, and what it reads for that is 64 KiB of garbage each time.
      // It counts as read only when there is room in the buffer: from Node 26 on, a call of read() takes one chunk.
      req.pause()
      while (req.read() !== null);
      // Node calls it when the last response of a connection has been sent.
      socket.destroySoon = () => {
        socket.end()
        setTimeout(() => dropAtMost(req, MAX_LINGER_BYTES), LINGER_UNREAD_MS).unref()
        closeSoon(socket)
      }
    }
    return writeHead(...values)
  }
}

const waitForTurn = createTurns()

/**
 * Reads and drops the rest of a body, at most about so many bytes of it: one chunk in a turn of the event loop for all
 * connections, so that those of many make no turn long.
 */
function dropAtMost(req: IncomingMessage, bytes: number): void {
  let left = bytes
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length
    req.pause()
    if (left >= 0) void waitForTurn('').then(() => req.resume())
  })
  req.resume()
}

/**
 * Returns the path and query of a request target (RFC 9112, section 3.2), and `*` unchanged; undefined for another
 * target: Express answers one without a path by itself, as an HTML page.
 */
function toOriginForm(target: string): string | undefined {
  if (target.startsWith('/') || target === '*') return target
  const [, path] = /^https?:\/\/[^/?#]+(.*)$/i.exec(target) ?? []
  return path === undefined || path.startsWith('/') ? path : `/${path}`
}

/** Finds what is wrong with the HTTP version or the Host header of a request, which Node accepts. */
function findHeadProblem(req: IncomingMessage): string | undefined {
  if (req.httpVersionMajor !== 1) return NOT_HTTP
  if (req.headers.host === undefined && req.httpVersion === '1.1') return 'The Host header is missing.'
  return hasSeveralHosts(req) ? 'The Host header must be sent once.' : undefined
}

/** Node keeps the first of several Host headers. RFC 9112, section 3.2 asks for a 400. */
function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  // Names and values in turn.
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && /^host$/i.test(text)).length > 1
}

const NOT_HTTP = 'The request is not valid HTTP/1.1.'
const REQUEST_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: `The headers are larger than ${MAX_HEADER_BYTES / 1024} KiB, or more than ${MAX_HEADERS}.`,
  ERR_HTTP_REQUEST_TIMEOUT: 'The request took too long to arrive.',
}

function toRequestError({ code }: NodeJS.ErrnoException): ApiError {
  return new ApiError('invalid_request', REQUEST_ERRORS[code ?? ''] ?? NOT_HTTP)
}

/** Writes an error response on a connection for which Node has made no response object. */
function writeRawError(socket: Duplex, error: ApiError, onRefusal: (error: ApiError, requestId: string) => void): void {
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

/**
 * Sends a caller that has closed its side of the connection its responses: Node would close it, too, and drop them.
 * TCP does not show whether the caller still reads, but one that does not resets the connection when it gets a byte,
 * which the next write notices. So it is probed by 100 Continue, which callers discard that have not asked for it (RFC
 * 9110, section 10.1.1), and HTTP/1.0 lacks.
 */
function serveHalfClosed(server: Server, probeMs: number): void {
  // Neither this nor `_httpMessage`, the response whose turn it is, is in Node's types.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', (socket: Socket & { readonly _httpMessage?: ServerResponse | null }) => {
    const probe = (): void => {
      const { _httpMessage: res } = socket
      // Events and lines may be long in coming, and their callers close both sides at once.
      const cannotBeProbed = res?.chunkedEncoding || res?.req.httpVersion === '1.0'
      if (cannotBeProbed && !res.writableEnded) socket.destroy()
      else if (res && !res.headersSent) res.writeContinue()
    }
    socket.once('end', () => {
      const { _httpMessage: res } = socket
      const timer = res ? setInterval(probe, probeMs).unref() : undefined
      socket.once('close', () => clearInterval(timer))
    })
  })
}

function closeSoon(socket: Duplex): void {
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

async function listen(server: Server, { host, port, portSetting = 'PORT' }: HttpServerOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (error: NodeJS.ErrnoException) => {
    const advice: Partial<Record<string, string>> = {
      EADDRINUSE: `Port ${port} is taken: stop what uses it, or set another ${portSetting}.`,
      EADDRNOTAVAIL: `HOST ${host} is no address of this machine.`,
      ENOTFOUND: `HOST ${host} is no address, and no name of one.`,
    }
    const message = advice[error.code ?? '']
    reject(message === undefined ? error : new Error(message, { cause: error }))
  })
  server.listen(port, host, resolve)
  await promise
}

function toReachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

/**
 * Ends the response and its connection at once: a reader that does not read would hold up the stop. One that has not
 * begun becomes a 503, since its end alone would be an empty 200.
 */
function endStream(res: ServerResponse): void {
  if (!res.headersSent) writeError(res, serviceUnavailable('The service is stopping; try again.'), requestIdOf(res))
  res.end()
  res.req.socket.destroySoon()
}

async function closeGracefully(
  server: Server,
  streams: ReadonlySet<ServerResponse>,
  sockets: ReadonlySet<Socket>,
  graceMs: number,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => server.closeAllConnections(), graceMs)
  // Browsers and proxies keep spare ones, which Node takes for those of requests, and checks the time of no longer.
  const unusedTimer = setTimeout(() => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }, LINGER_MS)
  server.close(() => resolve())
  server.closeIdleConnections()
  for (const res of streams) endStream(res)
  await promise
  clearTimeout(timer)
  clearTimeout(unusedTimer)
}
