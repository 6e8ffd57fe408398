import { type Database, isDatabaseUnavailable, isStatementError, isStatementTimeout } from '@workflow-service/database'
import { backoff, batchCalls, type BatchOptions } from '@workflow-service/service-kit'
import { sleep } from '../sleep.ts'

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 2_000
/** Time-outs of one statement, while the database answers others, before the attempt at the run fails. */
export const MAX_STATEMENT_TIMEOUTS = 3

/** A statement that times out although the database answers others. */
export class SlowStatementError extends Error {
  override name = 'SlowStatementError'
  override message = `A statement timed out ${MAX_STATEMENT_TIMEOUTS} times while the database answered others`
}

/**
 * Runs a database operation, and repeats it while the database is unavailable, so that runs survive an outage. An
 * answer can get lost after its statement took effect: the operation must be safe to repeat. It gets the number of its
 * time-outs so far: after the first, it should not share a statement with others. A signal that is aborted already does
 * not keep the operation from being tried once, so that a lease can still be released.
 * @throws SlowStatementError when the operation alone is slow; the signal's reason instead of a repetition once it is
 *   aborted.
 */
export async function retryWhileUnavailable<Result>(
  { db, signal }: { readonly db: Pick<Database, 'ping'>; readonly signal: AbortSignal },
  operation: (timeouts: number) => Promise<Result>,
): Promise<Result> {
  const nextDelayMs = backoff({ firstMs: FIRST_DELAY_MS, maxMs: MAX_DELAY_MS })
  let timeouts = 0
  for (;;) {
    try {
      return await operation(timeouts)
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      if (isStatementTimeout(error) && (await answersPing(db))) timeouts += 1
      if (timeouts === MAX_STATEMENT_TIMEOUTS) throw new SlowStatementError()
      await sleep(nextDelayMs(), signal)
    }
  }
}

/**
 * Batches the calls of a statement that many runs share. After the first time-out of a call, which `timeouts` says, it
 * has the statement to itself. Of a batch that PostgreSQL rejects, or that alone times out, only the bad item fails.
 */
export function batchAtFirst<Item, Result>(
  db: Pick<Database, 'ping'>,
  run: (items: Item[]) => Promise<readonly Result[]>,
  options: Omit<BatchOptions<Item>, 'isItemError'>,
): (item: Item, timeouts: number) => Promise<Result> {
  const batched = batchCalls(run, {
    ...options,
    isItemError: async (error) => isStatementError(error) || (isStatementTimeout(error) && (await answersPing(db))),
  })
  return async (item, timeouts) => (timeouts === 0 ? await batched(item) : (await run([item]))[0]!)
}

function answersPing(db: Pick<Database, 'ping'>): Promise<boolean> {
  return db.ping().then(
    () => true,
    () => false,
  )
}
