import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { runBatches } from './run-batches.ts'

test('runs batches until nothing is left, each after a pause that leaves its share of the time to others', async () => {
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

test('ends when its signal aborts, in the midst of a pause', async () => {
  const stopping = new AbortController()
  let batches = 0
  await runBatches({ signal: stopping.signal, pauseMs: 60_000 }, async () => {
    batches += 1
    setImmediate(() => stopping.abort())
    return true
  })
  expect(batches).toBe(1)
})
