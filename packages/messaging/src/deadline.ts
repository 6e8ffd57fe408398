/** What the work gives, or an error once the time is over; the work itself is not stopped. */
export async function withDeadline<Result>(work: Promise<Result>, timeoutMs: number, what: string): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${what} took longer than ${timeoutMs} ms`)), timeoutMs)
  try {
    return await Promise.race([work, expired])
  } finally {
    clearTimeout(timer)
  }
}
