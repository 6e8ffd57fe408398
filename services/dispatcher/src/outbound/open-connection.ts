import { request as httpRequest } from 'node:http'
import { connect as netConnect, isIP, SocketAddress } from 'node:net'
import type { LookupFunction, Socket, TcpNetConnectOpts } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import type { SecureContext, TLSSocket } from 'node:tls'
import { toAuthority } from './egress-proxy.ts'
import type { EgressProxy } from './egress-proxy.ts'
import { toFailure, unreachable } from './outbound-result.ts'
import type { OutboundOutcome } from './outbound-result.ts'

/** A step either has its socket or knows how the request ended. After an abort it answers nothing of use. */
export type Step<T> = { ok: true; value: T } | { ok: false; outcome: OutboundOutcome }

/** How long one address may take before the next one is tried as well. */
const nextAddressAfterMs = 500

/** No more addresses of one name are dialled. */
const maxDialled = 8

/** Opens TCP connections in place of `net.connect`, for tests. */
export type Dial = (options: TcpNetConnectOpts) => Socket

/**
 * Connects to one of `addresses`, which have been judged, and to nothing else: names are not looked up again. The
 * connection's far end is compared with them before a byte is written.
 */
export function openConnection(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
  dial: Dial = netConnect,
): Promise<Step<Socket>> {
  const pinned = new Set(addresses.map(toCanonical))
  const candidates = addresses.slice(0, maxDialled).map((address) => ({ address, family: isIP(address) }))
  const lookup: LookupFunction = (_name, _options, callback) => callback(null, candidates)
  const [only] = candidates
  const target =
    candidates.length === 1 && only !== undefined
      ? { host: only.address }
      : { host: 'judged.invalid', lookup, autoSelectFamily: true, autoSelectFamilyAttemptTimeout: nextAddressAfterMs }
  return new Promise((resolve) => {
    const socket = hold(dial({ ...target, port, noDelay: true }), signal)
    socket.once('error', (error) => resolve({ ok: false, outcome: toFailure(error, 'connect', false) }))
    socket.once('connect', () => {
      if (socket.remoteAddress !== undefined && pinned.has(toCanonical(socket.remoteAddress))) {
        resolve({ ok: true, value: socket })
        return
      }
      socket.destroy()
      resolve({
        ok: false,
        outcome: unreachable('other', false, 'the connection went to an address that was not judged'),
      })
    })
  })
}

/** `certificateName` is what the certificate must be for: the URL's host name or address. */
export function secureConnection(
  socket: Socket,
  certificateName: string,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<Step<TLSSocket>> {
  return new Promise((resolve) => {
    const secured = tlsConnect({
      socket,
      secureContext,
      host: certificateName,
      // An address has no place in the SNI extension.
      ...(isIP(certificateName) === 0 ? { servername: certificateName } : {}),
      ALPNProtocols: ['http/1.1'],
      // Said outright, since NODE_TLS_REJECT_UNAUTHORIZED=0 would change the default.
      rejectUnauthorized: true,
    })
    hold(secured, signal)
    secured.once('error', (error) => resolve({ ok: false, outcome: toFailure(error, 'tls', false) }))
    secured.once('secureConnect', () => resolve({ ok: true, value: secured }))
  })
}

/**
 * Asks the egress proxy for a tunnel to `host`, which the proxy looks up and judges. What it denies (4xx, Smokescreen:
 * 407) is `refused`; 502 and 504 say that it could not reach the endpoint; anything else is a fault of the proxy.
 */
export async function openTunnel(
  proxy: EgressProxy,
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<Step<Socket>> {
  const connected = await new Promise<Step<Socket>>((resolve) => {
    const socket = hold(netConnect({ host: proxy.host, port: proxy.port, noDelay: true }), signal)
    socket.once('error', () => resolve({ ok: false, outcome: proxyFault('cannot be reached') }))
    socket.once('connect', () => resolve({ ok: true, value: socket }))
  })
  if (!connected.ok) return connected
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
      createConnection: () => connected.value,
    })
    request.once('error', () => resolve({ ok: false, outcome: proxyFault('broke off or sent no valid answer') }))
    request.once('connect', (answer, socket, head) => {
      const status = answer.statusCode ?? 0
      if (status >= 200 && status < 300) {
        if (head.length > 0) socket.unshift(head)
        resolve({ ok: true, value: connected.value })
        return
      }
      socket.destroy()
      const told = answer.headers['x-smokescreen-error']
      resolve({ ok: false, outcome: toProxyOutcome(status, typeof told === 'string' ? told : '') })
    })
    request.end()
  })
}

function toProxyOutcome(status: number, told: string): OutboundOutcome {
  const words = told.replaceAll(/[^\x20-\x7E]/gu, '').slice(0, 200)
  const detail = words === '' ? `status ${status}` : words
  if (status === 502 || status === 504) {
    return unreachable('beyond_proxy', false, `the egress proxy could not reach the endpoint (${detail})`)
  }
  if (status < 400 || status >= 500) return proxyFault(`failed (${detail})`)
  return {
    kind: 'refused',
    code: 'url_not_public',
    address: null,
    detail: `the egress proxy does not let requests through to this endpoint (${detail})`,
  }
}

function proxyFault(what: string): OutboundOutcome {
  return unreachable('proxy', false, `the service's own egress proxy ${what}`)
}

/** Destroys the socket when the deadline passes; an error that comes when nobody waits any more is dropped. */
function hold<T extends Socket>(socket: T, signal: AbortSignal): T {
  const destroy = (): void => {
    socket.destroy()
  }
  if (signal.aborted) destroy()
  signal.addEventListener('abort', destroy, { once: true })
  socket.on('error', () => undefined)
  return socket
}

/** The same address in the one spelling that sockets use. */
function toCanonical(address: string): string {
  return isIP(address) === 6 ? new SocketAddress({ address, family: 'ipv6' }).address : address
}
