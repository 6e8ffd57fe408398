import { expect, test } from '@jest/globals'
import { createPace } from './pace.ts'

function work(ms: number): number {
  const beganMs = performance.now()
  while (performance.now() < beganMs + ms);
  return performance.now() - beganMs
}

test('a background task pauses after each piece of work, so that it works at most its share of the time', async () => {
  const pace = createPace(0.2)
  for (const ms of [5, 20]) {
    const workedMs = work(ms)
    const pausedAtMs = performance.now()
    await pace()
    // Timers have whole milliseconds, and begin with the one in which they are set.
    expect(performance.now() - pausedAtMs).toBeGreaterThan(4 * workedMs - 2)
  }
})

test('a pause ends with the task', async () => {
  const stopping = new AbortController()
  const pace = createPace(1e-6, stopping.signal)
  work(5)
  const paused = pace()
  stopping.abort()
  await expect(paused).resolves.toBeUndefined()
})
