import type { IncomingHttpHeaders } from 'node:http'

/** By these people find an answer in the logs of their servers, or see what limited a request. */
const SHOWN =
  /^(content-type|content-language|retry-after|server|via|allow|traceparent|(x-)?ratelimit-?.*|cf-ray|x-.*|.*request-id)$/
const SECRET = /auth|cookie|token|secret|key|signature|session|pass|pwd|credential|jwt|assertion|otp|[cx]srf|sid/
const MAX_VALUE_LENGTH = 1_000
const MAX_LENGTH = 2_000

/**
 * Returns the headers of an answer that people may see, if any: at most 2,000 characters, none of them a control.
 * Longer values are left out, not cut off: the beginning of a secret would not be found.
 */
export function shownHeaders(headers: IncomingHttpHeaders): { headers?: Record<string, string> } {
  const shown: Record<string, string> = {}
  let length = 0
  for (const [name, value] of Object.entries(headers)) {
    if (!SHOWN.test(name) || SECRET.test(name) || value === undefined) continue
    const text = String(value).replaceAll(/\p{Cc}/gu, '')
    const added = name.length + text.length
    if (text.length > MAX_VALUE_LENGTH || length + added > MAX_LENGTH) continue
    length += added
    shown[name] = text
  }
  return length > 0 ? { headers: shown } : {}
}
