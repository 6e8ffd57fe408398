import { isIP } from 'node:net'

/** A forward proxy that takes CONNECT requests, such as Smokescreen or Squid. `authorization` is secret. */
export type EgressProxy = {
  host: string
  port: number
  authorization: string | null
}

/** The setting cannot be read; the message says what to write instead. It never repeats the text, which may hold a password. */
export class EgressProxySyntaxError extends Error {
  override name = 'EgressProxySyntaxError'
}

/**
 * Reads `WEBHOOK_EGRESS_PROXY`: `http://[user:password@]host[:port]`, empty for none. The operator's own proxy may well
 * stand on a private address, so it is not judged. Throws `EgressProxySyntaxError`.
 */
export function parseEgressProxy(text: string): EgressProxy | null {
  if (text.trim() === '') return null
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined
  const isPlain =
    url?.protocol === 'http:' && (url.pathname === '/' || url.pathname === '') && url.search + url.hash === ''
  if (url === undefined || !isPlain || url.hostname === '' || url.port === '0') {
    throw new EgressProxySyntaxError('must be the URL of an HTTP CONNECT proxy')
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
    throw new EgressProxySyntaxError('has a user name or password with a broken percent escape')
  }
}

/** `host:port` as a CONNECT request writes it: an IPv6 address stands in brackets. */
export function toAuthority(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`
}
