import { isDatabaseUnavailable } from '@workflow-service/database'
import { backoff } from '@workflow-service/service-kit'
import { sleep } from '../sleep.ts'

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 2_000

/**
 * Runs a database operation, and repeats it while the database is unavailable, so that runs survive an outage. An answer
 * can get lost after its statement took effect: the operation must be safe to repeat.
 * @throws the signal's reason when it aborts between two attempts.
 */
export async function retryWhileUnavailable<Result>(
  signal: AbortSignal,
  operation: () => Promise<Result>,
): Promise<Result> {
  const nextDelayMs = backoff({ firstMs: FIRST_DELAY_MS, maxMs: MAX_DELAY_MS })
  for (;;) {
    try {
      return await operation()
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      await sleep(nextDelayMs(), signal)
    }
  }
}
