import { type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { createSecureContext, getCACertificates } from 'node:tls'
import { ANSWER_MAX_BYTES, mayContainText, isCompressed, readAnswerText, readLines } from './answer-text.ts'
import { shownHeaders } from './shown-headers.ts'
import { checkUrl } from './check-url.ts'
import type { EgressProxy } from './egress-proxy.ts'
import { findAddresses } from './find-addresses.ts'
import { createIdleConnections } from './idle-connections.ts'
import {
  abortWith,
  type Connect,
  isAnswering,
  openConnection,
  openTunnel,
  proxyError,
  secureConnection,
  toCanonical,
} from './open-connection.ts'
import {
  type OutboundOutcome,
  type OutboundPhase,
  type OutboundResult,
  toErrorOutcome,
  toReusedOutcome,
  toTimeoutOutcome,
  type UnansweredOutcome,
  unreachableOutcome,
} from './outbound-result.ts'
import { NO_SUBNETS, type Subnets } from './parse-subnets.ts'
import { createResolver, type NameResolver } from './resolver.ts'

export interface SendRequestOptions {
  /** Subnets that are allowed although they are not public. Default none. */
  allowedSubnets?: Subnets
  /** Default: a resolver that queries the system's name servers. */
  resolver?: NameResolver
  /** With a proxy, the proxy resolves and checks names; addresses in the URL are checked here as well. */
  egressProxy?: EgressProxy | null
  /** Certificate authorities (PEM) that are trusted in addition to the default ones. */
  ca?: string | string[]
  /** Opens connections instead of `net.connect`. */
  connect?: Connect
  /** How long a connection is kept for the next request. Default 2,000; tests shorten it. */
  idleMs?: number
}

export interface OutboundRequest {
  url: string
  /** Default: POST. */
  method?: 'GET' | 'POST' | 'DELETE'
  /** JSON text, sent as UTF-8; absent: none. */
  body?: string
  /** Sent in addition to Host, Content-Type, Content-Length and User-Agent, which cannot be overridden. */
  headers: Record<string, string>
  /** The time for everything, from the DNS look-up to the end of the answer's text. */
  deadlineMs: number
  /** Reads the answer's body, with any status, instead of a text of one line. */
  read?: ReadBody
  /** Requests with the same key and origin may use one connection after the other. Default: a new connection. */
  reuseKey?: string | undefined
}

/** How much of a body is read. `isComplete` gets each chunk; it returns whether all has come that is waited for. */
export interface ReadBody {
  readonly maxBytes: number
  readonly isComplete?: ((chunk: Buffer, headers: IncomingHttpHeaders) => boolean) | undefined
}

/**
 * Sends one request and resolves with its result. Rejects only for a header that HTTP forbids, never for what a peer
 * does.
 */
export type SendRequest = (request: OutboundRequest) => Promise<OutboundResult>

/** An explicit abort reason: without one, each abort creates an exception with a stack. */
const ABORT_REASON = 'ended'

/** A peer that sends more than this before its final status line (endless 1xx answers) is disconnected. */
const MAX_INTERIM_BYTES = 64 * 1024

const USER_AGENT = 'workflow-service/1'

/**
 * Creates the one client for requests to customers' endpoints. Each request has a connection to an address that was
 * checked for it and one deadline, and is sent at most once. The client does not retry, follow redirects, cache,
 * decompress, or read proxies from the environment. The status line and headers decide the outcome: if the body then
 * stalls, breaks or never ends, only its text is lost.
 */
export function createSendRequest(options: SendRequestOptions = {}): SendRequest {
  const allowed = options.allowedSubnets ?? NO_SUBNETS
  const resolver = options.resolver ?? createResolver()
  const egressProxy = options.egressProxy ?? null
  const idleConnections = createIdleConnections(options.idleMs)
  const secureContext = createSecureContext({
    minVersion: 'TLSv1.2',
    ...(options.ca === undefined ? {} : { ca: [...getCACertificates('default'), ...[options.ca].flat()] }),
  })

  async function exchange(request: OutboundRequest, progress: Progress): Promise<OutboundOutcome> {
    const checked = checkUrl(request.url, allowed)
    if (!checked.isAllowed) return { kind: 'refused', detail: checked.detail }
    const { url, host } = checked
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)

    // Of a tunnel, it is unknown whether the proxy would still let it through.
    const reuseKey = request.reuseKey && egressProxy === null ? `${request.reuseKey} ${url.origin}` : undefined
    let connection: Socket | UnansweredOutcome
    if (egressProxy === null) {
      const addresses = await findAddresses(host, { resolver, allowed }, progress.signal)
      if (!Array.isArray(addresses)) return addresses
      if (progress.isOver()) return toTimeoutOutcome('dns')
      const kept = reuseKey && idleConnections.take(reuseKey, new Set(addresses.map(toCanonical)))
      if (kept) {
        abortWith(kept, progress.signal)
        progress.phase = 'answer'
        const outcome = toReusedOutcome(await exchangeOn(kept, url, request, progress, keepAs(reuseKey, progress)))
        if (outcome.kind === 'unreachable') idleConnections.forget(reuseKey)
        return outcome
      }
      progress.phase = 'connect'
      connection = await openConnection(addresses, port, allowed, progress.signal, options.connect)
    } else {
      progress.phase = 'connect'
      connection = await openTunnelInTime(egressProxy, host, port, request.deadlineMs, progress)
    }
    if ('kind' in connection) return connection
    if (url.protocol === 'https:') {
      progress.phase = 'tls'
      connection = await secureConnection(connection, host, secureContext, progress.signal)
      if ('kind' in connection) return connection
    }
    if (progress.isOver()) return toTimeoutOutcome(progress.phase)
    progress.phase = 'answer'
    return exchangeOn(connection, url, request, progress, reuseKey ? keepAs(reuseKey, progress) : undefined)
  }

  /** Keeps a connection for the next request, with all that belongs to it. */
  function keepAs(reuseKey: string, progress: Progress): (socket: Socket, headers: IncomingHttpHeaders) => void {
    return (socket, headers) => {
      const address = toCanonical(socket.remoteAddress ?? '')
      progress.isKept = idleConnections.keep(reuseKey, socket, address, headers)
    }
  }

  return async (request) => {
    const startedMs = performance.now()
    const aborter = new AbortController()
    const progress: Progress = {
      phase: 'dns',
      answered: null,
      isProxySilent: false,
      isKept: false,
      isOver: () => aborter.signal.aborted || performance.now() - startedMs >= request.deadlineMs,
      signal: aborter.signal,
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    const deadline = new Promise<OutboundOutcome>((resolve) => {
      const expire = (): void => {
        if (progress.phase === 'connect' && progress.isProxySilent) resolve(proxyError('does not answer'))
        else resolve(progress.answered ?? toTimeoutOutcome(progress.phase))
      }
      // If this process was busy, an answer that arrived in time may still be unread: setImmediate lets it be read
      // first.
      timer = setTimeout(() => setImmediate(expire), request.deadlineMs)
    })
    try {
      const outcome = await Promise.race([exchange(request, progress), deadline])
      return { ...outcome, durationMs: Math.round(performance.now() - startedMs) }
    } finally {
      clearTimeout(timer)
      // Closes every socket of this request.
      if (!progress.isKept) aborter.abort(ABORT_REASON)
    }
  }
}

/**
 * Opens the tunnel. A proxy that has not given an answer yet may wait for an endpoint that does not accept the
 * connection, or may hang by itself: which of these decides whether the request ends as the endpoint's time-out or can
 * be repeated. So in the second half of the time, the proxy is asked for a host that does not exist, and unless it
 * answers that, it is what hangs.
 */
async function openTunnelInTime(
  proxy: EgressProxy,
  host: string,
  port: number,
  deadlineMs: number,
  progress: Progress,
): Promise<Socket | UnansweredOutcome> {
  const timer = setTimeout(() => {
    progress.isProxySilent = true
    void isAnswering(proxy, progress.signal).then((isAlive) => (progress.isProxySilent = !isAlive))
  }, deadlineMs / 2)
  const connection = await openTunnel(proxy, host, port, progress.signal)
  clearTimeout(timer)
  return connection
}

/** How far a request has come, for the outcome at its deadline. */
interface Progress {
  phase: OutboundPhase
  /** Set when the status line and the headers have arrived. From then on, this is the outcome. */
  answered: OutboundOutcome | null
  /** Whether the egress proxy answered no other request either, while it opened the tunnel. */
  isProxySilent: boolean
  /** Whether the connection was kept for another request. */
  isKept: boolean
  /** Whether the deadline has passed, by the clock: after a pause of this process, its timer may come too late. */
  isOver: () => boolean
  signal: AbortSignal
}

/** @param keep Called when the answer is complete and both sides leave the connection open. */
function exchangeOn(
  socket: Socket,
  url: URL,
  request: OutboundRequest,
  progress: Progress,
  keep: ((socket: Socket, headers: IncomingHttpHeaders) => void) | undefined,
): Promise<OutboundOutcome> {
  const bytesBefore = socket.bytesRead
  return new Promise((resolve) => {
    const body = request.body === undefined ? undefined : Buffer.from(request.body, 'utf8')
    const outgoing = httpRequest({
      method: request.method ?? 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        ...request.headers,
        Host: url.host,
        ...(body ? { 'Content-Type': 'application/json', 'Content-Length': body.length } : {}),
        'User-Agent': USER_AGENT,
        'Accept-Encoding': 'identity',
        Connection: keep ? 'keep-alive' : 'close',
      },
      // Without an agent there is no pool, no reuse and no proxy from the environment.
      createConnection: () => socket,
      insecureHTTPParser: false,
    })
    outgoing.on('error', (error) => {
      // An error after the headers changes nothing: the listeners of the answer resolve with the text or null.
      if (progress.answered === null) resolve(toErrorOutcome(error, 'answer'))
    })
    outgoing.on('information', () => {
      if (socket.bytesRead - bytesBefore > MAX_INTERIM_BYTES) {
        resolve(unreachableOutcome('invalid_answer', 'the endpoint sent too many interim (1xx) answers'))
      }
    })
    outgoing.on('upgrade', () => {
      resolve(unreachableOutcome('invalid_answer', 'the endpoint switched to another protocol (101)'))
    })
    outgoing.on('response', (answer) => {
      const answered = toAnswered(answer)
      progress.answered = answered
      const isAccepted = answered.status >= 200 && answered.status <= 299
      // Node emits it after the end of an answer that both sides may be followed by another one.
      if (keep) socket.once('free', () => keep(socket, answer.headers))
      if (request.read) {
        readBody(answer, request.read, (bytes, isCutOff) =>
          resolve({ ...answered, body: { bytes, isCutOff, headers: answer.headers } }),
        )
      } else if (!isAccepted && !isCompressed(answer.headers)) {
        const limits = { maxBytes: ANSWER_MAX_BYTES, timeoutMs: REJECTION_TIMEOUT_MS }
        readBody(answer, limits, (bytes) => resolve({ ...answered, rejection: readLines(bytes) ?? undefined }))
      } else if (isAccepted && mayContainText(answer.headers)) {
        readBody(answer, { maxBytes: ANSWER_MAX_BYTES }, (bytes, isCutOff) =>
          resolve({ ...answered, text: isCutOff ? null : readAnswerText(bytes) }),
        )
      } else resolve(answered)
    })
    outgoing.end(body)
  })
}

function toAnswered(answer: IncomingMessage): OutboundOutcome & { kind: 'answered' } {
  const status = answer.statusCode ?? 0
  const isRedirect = status >= 300 && status <= 399
  const location = isRedirect ? answer.headers.location : undefined
  return {
    kind: 'answered',
    status,
    location: location === undefined ? null : toDisplayText(location),
    text: null,
    ...shownHeaders(answer.headers),
  }
}

/** Node allows 16 KiB of headers, in which finding a long secret would take too long. */
const MAX_LOCATION_LENGTH = 1_000

/** Removes control characters from a header value, which Node reads as Latin-1, and limits its length. */
function toDisplayText(value: string): string {
  return value.replaceAll(/\p{Cc}/gu, '').slice(0, MAX_LOCATION_LENGTH)
}

/** How long the body of a rejection is awaited: the outcome is known, and the agent waits for it. */
const REJECTION_TIMEOUT_MS = 1_000

/** Calls `done` once with the body, or with what arrived of one that is too long, breaks or takes too much time. */
function readBody(
  answer: IncomingMessage,
  { maxBytes, isComplete, timeoutMs }: ReadBody & { readonly timeoutMs?: number },
  done: (bytes: Buffer, isCutOff: boolean) => void,
): void {
  const chunks: Buffer[] = []
  let length = 0
  const finish = (isCutOff: boolean): void => {
    clearTimeout(timer)
    answer.removeAllListeners('data').pause()
    done(Buffer.concat(chunks).subarray(0, maxBytes), isCutOff)
  }
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => finish(true), timeoutMs)
  answer.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length > maxBytes) finish(true)
    else if (isComplete?.(chunk, answer.headers)) finish(false)
  })
  answer.on('error', () => finish(true))
  answer.once('end', () => finish(false))
  answer.once('close', () => finish(true))
}
