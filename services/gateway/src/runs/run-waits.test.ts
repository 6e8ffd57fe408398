import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { type Db, newId } from '@workflow-service/database'
import { createCapturedLogger, waitUntil } from '@workflow-service/testkit'
import { createRunWaits } from './run-waits.ts'

/** Requests that wait for as many runs, which end once `onLook` has been called; with what is read of them. */
function waitForRuns(count: number, onLook: (forget: (() => void)[]) => void = () => {}) {
  const runIds = Array.from({ length: count }, () => newId())
  const seen = { over: 0, reads: 0, readsAtOnce: 0 }
  let active = 0
  const query = async ({ name }: { name: string }) => {
    if (name === 'find-ended-runs') {
      onLook(forget)
      return { rows: runIds.map((id) => ({ id })) }
    }
    seen.reads += 1
    active += 1
    seen.readsAtOnce = Math.max(seen.readsAtOnce, active)
    await nextTurn()
    active -= 1
    return { rows: [] }
  }
  const { logger, lines } = createCapturedLogger()
  const waits = createRunWaits({ pool: { query } } as unknown as Db, logger)
  const wait = { organizationId: newId(), waitMs: 60_000, onOver: () => void (seen.over += 1) }
  const forget = runIds.map((runId) => waits.add({ ...wait, runId })!)
  return { waits, seen, lines }
}

test('runs that end together are read by a few connections, and answer all who wait', async () => {
  const { waits, seen } = waitForRuns(100)
  await waitUntil(() => seen.over === 100)
  expect(seen).toEqual({ over: 100, reads: 100, readsAtOnce: 10 })
  await waits.close()
})

test('a run is not read for a request that is closed while it is looked for', async () => {
  let looks = 0
  const { waits, seen, lines } = waitForRuns(1, ([forget]) => {
    looks += 1
    forget!()
  })
  await waitUntil(() => looks > 0)
  await waits.close()
  expect([seen, lines]).toEqual([{ over: 0, reads: 0, readsAtOnce: 0 }, []])
})
