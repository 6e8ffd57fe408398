import { serviceUnavailable } from '@workflow-service/service-kit'

/** What the work gives, or 503 once the time is over; the work itself goes on. */
export async function withDeadline<Result>(work: Promise<Result>, deadlineMs: number): Promise<Result> {
  const { promise: expired, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(serviceUnavailable('This took too long; try again in a moment.')), deadlineMs)
  try {
    return await Promise.race([work, expired])
  } finally {
    clearTimeout(timer)
    // Nobody hears how it ends after the deadline.
    work.catch(() => {})
  }
}
