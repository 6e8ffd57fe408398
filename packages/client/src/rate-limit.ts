/** The key's limit of requests, from `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10). */
export interface RateLimit {
  readonly limit: number
  readonly remaining: number
  /** Until `remaining` is `limit` again. */
  readonly resetMs: number
}

/** Returns null if the answer does not have it, or it cannot be read. */
export function readRateLimit(policy: string | null, state: string | null): RateLimit | null {
  const limit = readParameter(policy, 'q')
  const remaining = readParameter(state, 'r')
  const resetSeconds = readParameter(state, 't')
  if (limit === null || remaining === null || resetSeconds === null) return null
  return { limit, remaining, resetMs: resetSeconds * 1000 }
}

function readParameter(header: string | null, name: string): number | null {
  const [, digits] = new RegExp(`;\\s*${name}=(\\d+)`).exec(header ?? '') ?? []
  return digits === undefined ? null : Number(digits)
}
