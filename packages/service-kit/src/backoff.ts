export interface BackoffOptions {
  /** The first delay, in milliseconds. */
  firstMs: number
  /** The longest delay, in milliseconds. */
  maxMs: number
  /** Whether each delay is shortened by a random part of up to a half, so that many clients do not retry together. */
  hasJitter?: boolean
  /** From 0 to 1; another one in tests. */
  random?: () => number
}

/** Returns a function that gives the next delay in milliseconds: `firstMs`, then twice the last one, up to `maxMs`. */
export function backoff({ firstMs, maxMs, hasJitter = false, random = Math.random }: BackoffOptions): () => number {
  let nextMs = firstMs
  return () => {
    const delayMs = Math.min(nextMs, maxMs)
    nextMs = delayMs * 2
    return hasJitter ? delayMs * (1 - random() / 2) : delayMs
  }
}
