import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work of all runs in one turn of the event loop, after which further work waits for the next one. */
const TURN_MS = 5

let beganMs: number | null = null

/**
 * Does work of a run that takes milliseconds, in a turn of the event loop that has time left. The sources of many runs can arrive
 * together: 50 payloads for the largest example held up all other runs for over 100 ms.
 */
export async function inTurn<Result>(work: () => Result): Promise<Result> {
  for (;;) {
    const nowMs = performance.now()
    if (beganMs === null) {
      beganMs = nowMs
      setImmediate(() => (beganMs = null))
    }
    // The work begins at once, since others of this turn would otherwise find the same time left.
    if (nowMs - beganMs < TURN_MS) return work()
    await nextTurn()
  }
}
