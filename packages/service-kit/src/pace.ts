import { setTimeout as sleep } from 'node:timers/promises'

/** How a background task leaves the database to others. */
interface Pauses {
  /**
   * Of the time, at most, that the work takes. As a task awaits its statements, it takes at most this share of one core
   * with PostgreSQL's part; and less on a busy machine, where each piece takes longer. Default: 1.
   */
  readonly share?: number
  /** The shortest pause. Default: 0. */
  readonly pauseMs?: number
  /** Ends a pause. */
  readonly signal: AbortSignal
}

/** Returns a function that a background task calls after each piece of work, and that pauses. */
export function createPace({ share = 1, pauseMs = 0, signal }: Pauses): () => Promise<void> {
  let resumedAtMs = performance.now()
  return async () => {
    const workedMs = performance.now() - resumedAtMs
    await sleep(Math.max(pauseMs, workedMs * (1 / share - 1)), undefined, { signal, ref: false }).catch(() => {})
    resumedAtMs = performance.now()
  }
}

/** Runs batches, with pauses, until one resolves to false, since nothing is left to do, or the signal aborts. */
export async function runBatches(pauses: Pauses, runBatch: () => Promise<boolean>): Promise<void> {
  const pace = createPace(pauses)
  while (!pauses.signal.aborted && (await runBatch())) await pace()
}
