import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Returns a function that a background task calls after each piece of work. It pauses, so that the task works at most
 * this share of the time. As a task awaits its statements, it takes at most this share of one core with PostgreSQL's
 * part; and less on a busy machine, where each piece takes longer.
 * @param share More than 0, at most 1.
 * @param signal Ends a pause.
 */
export function createPace(share: number, signal?: AbortSignal): () => Promise<void> {
  let resumedAtMs = performance.now()
  return async () => {
    const pauseMs = (performance.now() - resumedAtMs) * (1 / share - 1)
    await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => {})
    resumedAtMs = performance.now()
  }
}
