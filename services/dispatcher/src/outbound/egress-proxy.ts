import { isIP } from 'node:net'

/** A forward proxy that takes CONNECT requests, such as Smokescreen or Squid. `authorization` is secret. */
export interface EgressProxy {
  host: string
  port: number
  authorization: string | null
}

/**
 * Reads `WEBHOOK_EGRESS_PROXY`: `http://[user:password@]host[:port]`, or empty for no proxy. The proxy belongs to the
 * operator and may have a private address, so its address is not checked.
 * @throws Error whose message never repeats the value, which may contain a password.
 */
export function parseEgressProxy(text: string): EgressProxy | null {
  if (text.trim() === '') return null
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined
  const isPlain =
    url?.protocol === 'http:' && (url.pathname === '/' || url.pathname === '') && url.search + url.hash === ''
  if (url === undefined || !isPlain || url.hostname === '' || url.port === '0') {
    throw new Error('must be the URL of an HTTP CONNECT proxy')
  }
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  return { host, port: url.port === '' ? 80 : Number(url.port), authorization: readAuthorization(url) }
}

function readAuthorization(url: URL): string | null {
  if (url.username === '' && url.password === '') return null
  try {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`
  } catch {
    throw new Error('has a user name or password with a broken percent escape')
  }
}

/** Returns `host:port` as a CONNECT request writes it, with an IPv6 address in brackets. */
export function toAuthority(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}
