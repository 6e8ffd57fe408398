import { setTimeout as pause } from 'node:timers/promises'

const INTERVAL_MS = 100

/** Asks until the question is answered; rejects with its last error when that takes longer than `timeoutMs`. */
export async function waitFor<Answer>(ask: () => Promise<Answer>, timeoutMs: number): Promise<Answer> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() >= deadlineMs) throw error
    }
    await pause(INTERVAL_MS)
  }
}
