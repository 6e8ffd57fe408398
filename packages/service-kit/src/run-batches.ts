import { setTimeout as sleep } from 'node:timers/promises'

/** How batches leave the database to others. */
interface BatchPauses {
  /** Ends the batches, and a pause at once. */
  readonly signal: AbortSignal
  /** The shortest pause between two batches. */
  readonly pauseMs: number
  /** Of the time, at most, that the batches take. Default: 1. */
  readonly share?: number
}

/** Runs batches until one resolves to false, since nothing is left to do. */
export async function runBatches(
  { signal, pauseMs, share = 1 }: BatchPauses,
  runBatch: () => Promise<boolean>,
): Promise<void> {
  while (!signal.aborted) {
    const startedMs = performance.now()
    if (!(await runBatch())) return
    const tookMs = performance.now() - startedMs
    await sleep(Math.max(pauseMs, tookMs * (1 / share - 1)), undefined, { signal }).catch(() => {})
  }
}
