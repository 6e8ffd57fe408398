import { request as httpRequest } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { createSecureContext, getCACertificates } from 'node:tls'
import { maxAnswerBytes, mayHoldText, readAnswerText } from './answer-text.ts'
import type { EgressProxy } from './egress-proxy.ts'
import { judgeAddress } from './judge-address.ts'
import { judgeUrl } from './judge-url.ts'
import type { UrlHost } from './judge-url.ts'
import { openConnection, openTunnel, secureConnection } from './open-connection.ts'
import type { Dial, Step } from './open-connection.ts'
import { toFailure, toTimeout, unreachable } from './outbound-result.ts'
import type { OutboundOutcome, OutboundPhase, OutboundResult } from './outbound-result.ts'
import { noSubnets } from './parse-subnets.ts'
import type { Subnets } from './parse-subnets.ts'
import { createResolver } from './resolver.ts'
import type { NameResolver } from './resolver.ts'

export type SendRequestOptions = {
  /** Subnets that are let through although they are not public. Default none. */
  allowedSubnets?: Subnets
  /** Default: a resolver that asks the system's name servers. */
  resolver?: NameResolver
  /** With a proxy, names are looked up and judged by the proxy; addresses in the URL are judged here as well. */
  egressProxy?: EgressProxy | null
  /** Certificate authorities (PEM) that are trusted beside the usual ones. */
  ca?: string | string[]
  /** Opens connections in place of `net.connect`. */
  dial?: Dial
}

export type OutboundRequest = {
  url: string
  /** JSON text, sent as UTF-8. */
  body: string
  /** In addition to Host, Content-Type, Content-Length and User-Agent, which are set here and win. */
  headers: Record<string, string>
  /** For everything from the look-up to the end of the answer's text. */
  deadlineMs: number
}

/** Sends one POST and says what became of it. Rejects for nothing that a peer does, only for a header that HTTP forbids. */
export type SendRequest = (request: OutboundRequest) => Promise<OutboundResult>

/** Given as the reason, since without one each abort would make an exception with a stack: 37 µs. */
const ended = 'ended'

/** No answer needs more than this before its final status line: 1xx answers without end are cut off here. */
const maxInterimBytes = 64 * 1024

const userAgent = 'workflow-service/1'

/**
 * Makes the one client for requests to customers' endpoints. Each request has a connection of its own to an address
 * that was judged for it, one absolute deadline, and at most one sending: nothing is retried, followed, reused, cached,
 * decompressed or taken from the environment. The status line with its headers decides; a body that stalls, breaks or
 * never ends only loses its text.
 */
export function createSendRequest(options: SendRequestOptions = {}): SendRequest {
  const allowed = options.allowedSubnets ?? noSubnets
  const resolver = options.resolver ?? createResolver()
  const egressProxy = options.egressProxy ?? null
  const secureContext = createSecureContext({
    minVersion: 'TLSv1.2',
    ...(options.ca === undefined ? {} : { ca: [...getCACertificates('default'), ...[options.ca].flat()] }),
  })

  async function findAddresses(host: UrlHost): Promise<Step<string[]>> {
    if (host.kind === 'address') return { ok: true, value: [host.address] }
    if (host.kind === 'loopbackName') return findLoopback(host.name)
    const resolution = await resolver.resolve(host.name)
    if (!resolution.ok) return { ok: false, outcome: unreachable(resolution.cause, false, resolution.detail) }
    for (const address of resolution.addresses) {
      const judgement = judgeAddress(address, allowed)
      if (!judgement.permitted) return { ok: false, outcome: refused(address, `${host.name}: ${judgement.detail}`) }
    }
    return { ok: true, value: resolution.addresses }
  }

  /** `localhost` never reaches DNS (RFC 6761): it stands for whichever loopback address is allowed. */
  function findLoopback(name: string): Step<string[]> {
    const loopback = ['127.0.0.1', '::1'].filter((address) => judgeAddress(address, allowed).permitted)
    if (loopback.length > 0) return { ok: true, value: loopback }
    return { ok: false, outcome: refused('127.0.0.1', `${name} is this machine, and its subnet is not allowed`) }
  }

  async function exchange(request: OutboundRequest, progress: Progress): Promise<OutboundOutcome> {
    const judged = judgeUrl(request.url, allowed)
    if (!judged.ok) return { kind: 'refused', code: judged.code, address: judged.address, detail: judged.detail }
    const { url, host } = judged
    const hostName = host.kind === 'address' ? host.address : host.name
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)

    let connection: Step<Socket>
    if (egressProxy === null) {
      const addresses = await findAddresses(host)
      if (!addresses.ok || progress.signal.aborted) return outcomeOf(addresses, progress)
      progress.phase = 'connect'
      connection = await openConnection(addresses.value, port, progress.signal, options.dial)
    } else {
      progress.phase = 'connect'
      connection = await openTunnel(egressProxy, hostName, port, progress.signal)
    }
    if (connection.ok && url.protocol === 'https:') {
      progress.phase = 'tls'
      connection = await secureConnection(connection.value, hostName, secureContext, progress.signal)
    }
    if (!connection.ok) return connection.outcome
    progress.phase = 'answer'
    return post(connection.value, url, request, progress)
  }

  return async (request) => {
    const startedMs = performance.now()
    const aborter = new AbortController()
    const progress: Progress = { phase: 'dns', sent: false, answered: null, signal: aborter.signal }
    let timer: ReturnType<typeof setTimeout> | undefined
    const deadline = new Promise<OutboundOutcome>((resolve) => {
      const pass = (): void => resolve(progress.answered ?? toTimeout(progress.phase, progress.sent))
      // When this process was busy, an answer that came in time may still wait to be read: it is read first.
      timer = setTimeout(() => setImmediate(pass), request.deadlineMs)
    })
    try {
      const outcome = await Promise.race([exchange(request, progress), deadline])
      return { ...outcome, durationMs: Math.round(performance.now() - startedMs) }
    } finally {
      clearTimeout(timer)
      // Whatever is still open for this request ends here.
      aborter.abort(ended)
    }
  }
}

type Progress = {
  phase: OutboundPhase
  sent: boolean
  /** Set once the status line and the headers are in: from then on, this is the outcome. */
  answered: OutboundOutcome | null
  signal: AbortSignal
}

function outcomeOf(step: Step<unknown>, progress: Progress): OutboundOutcome {
  return step.ok ? toTimeout(progress.phase, progress.sent) : step.outcome
}

function refused(address: string, detail: string): OutboundOutcome {
  return { kind: 'refused', code: 'url_not_public', address, detail }
}

function post(socket: Socket, url: URL, request: OutboundRequest, progress: Progress): Promise<OutboundOutcome> {
  return new Promise((resolve) => {
    const body = Buffer.from(request.body, 'utf8')
    const outgoing = httpRequest({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        ...request.headers,
        Host: url.host,
        'Content-Type': 'application/json',
        'Content-Length': body.length,
        'User-Agent': userAgent,
        'Accept-Encoding': 'identity',
        Connection: 'close',
      },
      // Without an agent there is no pool, no reuse and no proxy from the environment.
      createConnection: () => socket,
      insecureHTTPParser: false,
    })
    outgoing.on('error', (error) => {
      // After the headers, a fault of the body changes nothing; the end of `answer` tells what there is of the text.
      if (progress.answered === null) resolve(toFailure(error, 'answer', true))
    })
    outgoing.on('information', () => {
      if (socket.bytesRead > maxInterimBytes) {
        resolve(unreachable('invalid_answer', true, 'the endpoint sent too many interim (1xx) answers'))
      }
    })
    outgoing.on('upgrade', () => {
      resolve(unreachable('invalid_answer', true, 'the endpoint switched to another protocol (101)'))
    })
    outgoing.on('response', (answer) => {
      const answered = toAnswered(answer)
      progress.answered = answered
      if (answered.status > 299 || !mayHoldText(answer.headers)) {
        resolve(answered)
        return
      }
      readText(answer, (text) => resolve({ ...answered, text }))
    })
    progress.sent = true
    outgoing.end(body)
  })
}

function toAnswered(answer: IncomingMessage): OutboundOutcome & { kind: 'answered' } {
  const status = answer.statusCode ?? 0
  const isRedirect = status >= 300 && status <= 399
  const location = isRedirect ? answer.headers.location : undefined
  return { kind: 'answered', status, location: location === undefined ? null : toShown(location), text: null }
}

/** Node reads header bytes as Latin-1. What is shown of them is bounded and holds nothing invisible. */
function toShown(value: string): string {
  return value.replaceAll(/\p{Cc}/gu, '').slice(0, 2000)
}

/** Hands over the text once the body has ended in order, and null once it is too long or broken. */
function readText(answer: IncomingMessage, done: (text: string | null) => void): void {
  const chunks: Buffer[] = []
  let length = 0
  answer.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxAnswerBytes) done(null)
    else chunks.push(chunk)
  })
  answer.on('end', () => done(readAnswerText(Buffer.concat(chunks))))
  answer.on('error', () => done(null))
  answer.on('close', () => done(null))
}
