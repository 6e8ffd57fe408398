import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

/**
 * Headers of every JSON response, after OWASP's REST Security Cheat Sheet: a response is data, never a page, and no
 * cache keeps it. TLS ends at the proxy before the service; browsers ignore HSTS on a plain connection.
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

export interface JsonResponse {
  readonly status: number
  /** JSON as text or as its UTF-8 bytes; undefined for a response without a body (204). */
  readonly body: string | Buffer | undefined
  readonly requestId: string
  /** Further headers, names and values in turn. */
  readonly headers?: readonly string[] | undefined
  /** No browser reads the response: it omits SECURITY_HEADERS. */
  readonly isInternal?: boolean | undefined
}

/** Bytes of a response that are given to its connection in one turn of the event loop. */
const MAX_IN_TURN = 256 * 1024

/**
 * Writes a whole JSON response with one list of headers: setting headers one by one costs more than the rest of a short
 * response. Does nothing when a response has begun. Other requests are answered while a long one is written.
 */
export function writeJson(
  res: ServerResponse,
  { status, body, requestId, headers = [], isInternal }: JsonResponse,
): void | Promise<void> {
  if (res.headersSent) return
  const all = [...(isInternal ? [] : FIXED_HEADERS), 'X-Request-Id', requestId, ...headers]
  // One encoding of a long text; a short one is written as it is, with its headers.
  const bytes = typeof body === 'string' && body.length > MAX_IN_TURN ? Buffer.from(body) : body
  if (bytes !== undefined) {
    const length = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length
    all.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(length))
  }
  res.writeHead(status, all)
  if (typeof bytes === 'object' && bytes.length > MAX_IN_TURN) return writeInTurns(res, bytes)
  res.end(bytes)
}

async function writeInTurns(res: ServerResponse, bytes: Buffer): Promise<void> {
  let written = 0
  for (; bytes.length - written > MAX_IN_TURN && !res.closed && !res.writableEnded; written += MAX_IN_TURN) {
    res.write(bytes.subarray(written, written + MAX_IN_TURN))
    await setImmediate()
  }
  if (!res.writableEnded) res.end(bytes.subarray(written))
}
