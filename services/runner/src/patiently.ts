import { setTimeout as pause } from 'node:timers/promises'
import { isDatabaseUnavailable } from '@workflow-service/database'
import { endOf, type HeldSession } from './held-sessions.ts'

const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 2_000

/**
 * Does a database operation, again and again while the database is away: a run waits for it rather than fail. The
 * operation must bear to be repeated after an answer that was lost.
 * @throws LeaseLostError or RunInterruptedError when the session is given up meanwhile.
 */
export async function patiently<Result>(session: HeldSession, operation: () => Promise<Result>): Promise<Result> {
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
    try {
      return await operation()
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      await pauseIn(session, delayMs)
    }
  }
}

/** Waits, unless the session is given up meanwhile: then it throws why. */
export async function pauseIn(
  session: HeldSession,
  delayMs: number,
  signal: AbortSignal = session.abort,
): Promise<void> {
  try {
    await pause(delayMs, undefined, { signal })
  } catch {
    throw endOf(session)
  }
}
