import { type IncomingHttpHeaders, request as httpRequest } from 'node:http'
import { connect as netConnect, isIP, type Socket, SocketAddress, type TcpNetConnectOpts } from 'node:net'
import { connect as tlsConnect, type SecureContext, type TLSSocket } from 'node:tls'
import { type EgressProxy, toAuthority } from './egress-proxy.ts'
import { ownAddressError } from './find-address-error.ts'
import {
  findShortage,
  toConnectOutcome,
  toErrorOutcome,
  type UnansweredOutcome,
  unreachableOutcome,
} from './outbound-result.ts'
import type { Subnets } from './parse-subnets.ts'

/** After this time without a connection, the next address is tried in parallel. */
const NEXT_ADDRESS_AFTER_MS = 500

/** The most addresses of one name that are tried. */
const MAX_ADDRESSES = 8

/** Opens a TCP connection; tests replace it. */
export type Connect = (options: TcpNetConnectOpts) => Socket

/**
 * Connects to the first of `addresses` that accepts; they must have been checked. The name is not looked up again, and
 * the address of the peer is compared with the checked ones before a byte is written. A connection whose two ends have
 * the same address stays on this machine: it is refused unless the address is in `allowed`. Resolves to the outcome of
 * the request if there is no connection; after an abort, to either.
 */
export function openConnection(
  addresses: readonly string[],
  port: number,
  allowed: Subnets,
  signal: AbortSignal,
  connect: Connect = netConnect,
): Promise<Socket | UnansweredOutcome> {
  const checked = new Set(addresses.map(toCanonical))
  const { promise, resolve } = Promise.withResolvers<Socket | UnansweredOutcome>()
  const untried = addresses.slice(0, MAX_ADDRESSES)
  const opening = new Set<Socket>()
  const errors: Error[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  // Not `autoSelectFamily` of Node, which gives an address up when it tries the next one.
  const tryNext = (): void => {
    clearTimeout(timer)
    const host = untried.shift()
    if (host === undefined && opening.size === 0) resolve(toConnectOutcome(new AggregateError(errors)))
    if (host === undefined || signal.aborted) return
    const socket = destroyOnAbort(connect({ host, port, noDelay: true }), signal)
    opening.add(socket)
    socket.once('error', (error) => {
      opening.delete(socket)
      errors.push(error)
      tryNext()
    })
    socket.once('connect', () => {
      clearTimeout(timer)
      untried.length = 0
      opening.delete(socket)
      for (const other of opening) other.destroy()
      const error = findConnectionError(socket, checked, allowed)
      if (error) socket.destroy()
      resolve(error ?? socket)
    })
    if (untried.length > 0) timer = setTimeout(tryNext, NEXT_ADDRESS_AFTER_MS)
  }
  tryNext()
  return promise
}

function findConnectionError(
  { localAddress, remoteAddress }: Socket,
  checked: ReadonlySet<string>,
  allowed: Subnets,
): UnansweredOutcome | undefined {
  if (remoteAddress === undefined || !checked.has(toCanonical(remoteAddress))) {
    return unreachableOutcome('other', 'the connection went to an address that was not checked')
  }
  if (remoteAddress !== localAddress || allowed.contains(remoteAddress)) return undefined
  const detail = 'the address of the endpoint is not publicly reachable'
  return { kind: 'refused', detail, internalDetail: ownAddressError(remoteAddress) }
}

/**
 * Starts TLS on the socket. `certificateName` is the URL's host name or address, for which the certificate must be
 * issued.
 */
export function secureConnection(
  socket: Socket,
  certificateName: string,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<TLSSocket | UnansweredOutcome> {
  return new Promise((resolve) => {
    const secured = tlsConnect({
      socket,
      secureContext,
      host: certificateName,
      // SNI allows names only.
      ...(isIP(certificateName) === 0 ? { servername: certificateName } : {}),
      ALPNProtocols: ['http/1.1'],
      // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default.
      rejectUnauthorized: true,
    })
    destroyOnAbort(secured, signal)
    secured.once('error', (error) => resolve(toErrorOutcome(error, 'tls')))
    secured.once('secureConnect', () => resolve(secured))
  })
}

/**
 * Asks the egress proxy for a tunnel to `host`, which the proxy resolves and checks. A denial (4xx; Smokescreen: 407)
 * is `refused`. 502, 504 and Squid's errors of connections mean that the proxy could not reach the endpoint. Any other
 * answer is an error of the proxy or of its credentials, or that it is at its limit: the service is `unavailable`.
 */
export async function openTunnel(
  proxy: EgressProxy,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<Socket | UnansweredOutcome> {
  const connected = await new Promise<Socket | UnansweredOutcome>((resolve) => {
    const socket = destroyOnAbort(netConnect({ host: proxy.host, port: proxy.port, noDelay: true }), signal)
    socket.once('error', (error) =>
      resolve(findShortage(error) === undefined ? proxyError('cannot be reached') : toConnectOutcome(error)),
    )
    socket.once('connect', () => resolve(socket))
  })
  if ('kind' in connected) return connected
  const authority = toAuthority(host, port)
  return new Promise((resolve) => {
    const request = httpRequest({
      method: 'CONNECT',
      path: authority,
      setHost: false,
      headers: {
        Host: authority,
        ...(proxy.authorization === null ? {} : { 'Proxy-Authorization': proxy.authorization }),
      },
      createConnection: () => connected,
    })
    request.once('error', () => resolve(proxyError('closed the connection or sent an invalid answer')))
    request.once('connect', (answer, socket, head) => {
      const status = answer.statusCode ?? 0
      if (status >= 200 && status < 300) {
        if (head.length > 0) socket.unshift(head)
        resolve(connected)
        return
      }
      socket.destroy()
      resolve(toProxyOutcome(status, answer.headers))
    })
    request.end()
  })
}

/** Never exists (RFC 6761, section 6.4), so a proxy refuses it without a connection. */
const ABSENT_HOST = 'absent.invalid'

/**
 * Reports whether the proxy answers a request at all, with any status. Pending until then or until the signal aborts.
 */
export async function isAnswering(proxy: EgressProxy, signal: AbortSignal): Promise<boolean> {
  const tunnel = await openTunnel(proxy, ABSENT_HOST, 443, signal)
  // `refused` and `unreachable` are what it said of the host; `unavailable` may be an error of the proxy or a status
  // such as Squid's 503.
  if ('kind' in tunnel) return tunnel.kind !== 'unavailable' || tunnel.internalDetail !== undefined
  tunnel.destroy()
  return true
}

/**
 * Squid answers 503 or 500 for an endpoint that it cannot reach. Before 6.3, ERR_CANNOT_FORWARD is that of a name that
 * does not exist (its bug 5294).
 */
const SQUID_UNREACHABLE = /^ERR_(?:CONNECT_FAIL|DNS_FAIL|CANNOT_FORWARD)\b/

/** 4xx that say nothing of the endpoint: the proxy got the request too slowly, or gets too many. */
const TRY_AGAIN = [408, 429]

function toProxyOutcome(status: number, headers: IncomingHttpHeaders): UnansweredOutcome {
  const squidError = String(headers['x-squid-error'] ?? '')
  const reason = String(headers['x-smokescreen-error'] ?? squidError)
  const printable = reason.replaceAll(/[^\x20-\x7E]/gu, '').slice(0, 200)
  const internalDetail = `the egress proxy answered ${status} ${printable}`.trimEnd()
  if (status === 407 && headers['proxy-authenticate'] !== undefined) {
    return { ...proxyError('refuses its credentials (status 407)'), internalDetail }
  }
  if (status === 502 || status === 504 || SQUID_UNREACHABLE.test(squidError)) {
    const detail = `the egress proxy could not reach the endpoint (status ${status})`
    return { ...unreachableOutcome('beyond_proxy', detail), internalDetail }
  }
  if (status < 400 || status >= 500 || TRY_AGAIN.includes(status))
    return { ...proxyError(`failed (status ${status})`), internalDetail }
  const detail = `the egress proxy does not let requests through to this endpoint (status ${status})`
  return { kind: 'refused', detail, internalDetail }
}

/** A proxy that failed by itself is a shortage of the service: nothing of the endpoint was tried. */
export function proxyError(what: string): UnansweredOutcome & { kind: 'unavailable' } {
  return { kind: 'unavailable', detail: `the service's own egress proxy ${what}` }
}

/** Destroys the socket when the signal aborts. An error after that has no listener left, so it is ignored. */
function destroyOnAbort<T extends Socket>(socket: T, signal: AbortSignal): T {
  socket.on('error', () => undefined)
  abortWith(socket, signal)
  return socket
}

/** Destroys the socket when the signal aborts. */
export function abortWith(socket: Socket, signal: AbortSignal): void {
  const destroy = (): void => {
    socket.destroy()
  }
  if (signal.aborted) destroy()
  signal.addEventListener('abort', destroy, { once: true })
}

/** Returns the address in the spelling that sockets report. */
export function toCanonical(address: string): string {
  return isIP(address) === 6 ? new SocketAddress({ address, family: 'ipv6' }).address : address
}
