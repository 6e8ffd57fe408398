import type { ServerResponse } from 'node:http'

/**
 * Headers of every JSON answer, after OWASP's REST Security Cheat Sheet: an answer is data, never a page, and no cache
 * keeps it. TLS ends at the proxy before the service; browsers ignore HSTS on a plain connection.
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

const FIXED_HEADERS: readonly string[] = Object.entries(SECURITY_HEADERS).flat()

export interface JsonAnswer {
  readonly status: number
  /** JSON as text or as its UTF-8 bytes; undefined for an answer without a body (204). */
  readonly body: string | Buffer | undefined
  readonly requestId: string
  /** Further headers, names and values in turn. */
  readonly headers?: readonly string[] | undefined
  /** No browser reads the answer: it omits SECURITY_HEADERS. */
  readonly isInternal?: boolean | undefined
}

/**
 * Writes a whole JSON answer with one list of headers: setting headers one by one costs more than the rest of a short
 * answer. Does nothing when an answer has begun.
 */
export function writeJson(
  res: ServerResponse,
  { status, body, requestId, headers = [], isInternal }: JsonAnswer,
): void {
  if (res.headersSent) return
  const all = [...(isInternal ? [] : FIXED_HEADERS), 'X-Request-Id', requestId, ...headers]
  if (body !== undefined) {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    all.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(length))
  }
  res.writeHead(status, all)
  res.end(body)
}
