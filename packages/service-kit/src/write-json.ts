import type { ServerResponse } from 'node:http'

/**
 * Headers of every JSON answer, after OWASP's REST Security Cheat Sheet: answers are data, never a page, and are kept by
 * no cache. The connection to the service is the proxy's to encrypt; browsers ignore HSTS on a plain one.
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'Strict-Transport-Security': 'max-age=31536000',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

const FIXED_HEADERS: readonly string[] = [
  'Content-Type',
  'application/json; charset=utf-8',
  ...Object.entries(SECURITY_HEADERS).flat(),
]

/** What an answer says beside its body. */
export interface JsonAnswer {
  readonly status: number
  /** JSON as text, or as its UTF-8 bytes. */
  readonly body: string | Buffer
  readonly requestId: string
  /** Further headers, names and values in turn. */
  readonly headers?: readonly string[]
}

/**
 * Writes a whole JSON answer at once, as one list of headers: setting them one by one costs more than everything else in
 * a short answer. Does nothing when an answer has begun.
 */
export function writeJson(res: ServerResponse, { status, body, requestId, headers = [] }: JsonAnswer): void {
  if (res.headersSent) return
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  res.writeHead(status, [...FIXED_HEADERS, 'X-Request-Id', requestId, 'Content-Length', String(length), ...headers])
  res.end(body)
}
