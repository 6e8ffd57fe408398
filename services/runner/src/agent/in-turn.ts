import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work of all runs in one turn of the event loop, after which further work waits for the next one. */
const TURN_MS = 5

let spentMs = 0

/**
 * Does work of a run that takes milliseconds, in a turn of the event loop that has time left. The sources of many runs can arrive
 * together: 50 payloads for the largest example held up all other runs for over 100 ms. Only the work itself counts: where the
 * time since the turn began counted, small payloads waited behind the sockets of other runs (64 sessions: 25 % fewer runs).
 */
export async function inTurn<Result>(work: () => Result): Promise<Result> {
  for (;;) {
    if (spentMs < TURN_MS) break
    await nextTurn()
  }
  if (spentMs === 0) setImmediate(() => (spentMs = 0))
  const beganMs = performance.now()
  try {
    return work()
  } finally {
    spentMs += performance.now() - beganMs
  }
}
