import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { createPace, runBatches } from './pace.ts'

function work(ms: number): number {
  const beganMs = performance.now()
  while (performance.now() < beganMs + ms);
  return performance.now() - beganMs
}

test('a background task pauses after each piece of work, so that it works at most its share of the time', async () => {
  const pace = createPace({ share: 0.2, signal: new AbortController().signal })
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
  const pace = createPace({ share: 1e-6, signal: stopping.signal })
  work(5)
  const paused = pace()
  stopping.abort()
  await expect(paused).resolves.toBeUndefined()
})

test('batches run until nothing is left, each after a pause that leaves its share of the time to others', async () => {
  const { signal } = new AbortController()
  const durations = [0, 50, 0]
  const startedMs: number[] = []
  await runBatches({ signal, pauseMs: 20, share: 1 / 2 }, async () => {
    startedMs.push(performance.now())
    await sleep(durations.shift())
    return durations.length > 0
  })
  const [first = 0, second = 0, third = 0] = startedMs
  expect(startedMs).toHaveLength(3)
  expect(second - first).toBeGreaterThan(19)
  expect(third - second).toBeGreaterThan(95)
})

test('batches end when their signal aborts, in the midst of a pause', async () => {
  const stopping = new AbortController()
  let batches = 0
  await runBatches({ signal: stopping.signal, pauseMs: 60_000 }, async () => {
    batches += 1
    setImmediate(() => stopping.abort())
    return true
  })
  expect(batches).toBe(1)
})
