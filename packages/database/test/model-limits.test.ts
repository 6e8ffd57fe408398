import { beforeEach, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { recordModelLimit, reserveModelSlot } from '../src/index.ts'

const database = useTestDatabase()
beforeEach(() => database.db.pool.query('TRUNCATE model_limits'))

const reserve = (maxDelayMs = 30_000, isRepeated = false) =>
  reserveModelSlot(database.db, 'anthropic:x', { maxDelayMs, isRepeated })
const limit = (retryAfterMs: number) => recordModelLimit(database.db, 'anthropic:x', retryAfterMs)
const age = (interval: string) =>
  database.db.pool.query(
    `UPDATE model_limits SET limited_at = limited_at - $1::interval, not_before = not_before - $1::interval`,
    [interval],
  )
const readInterval = async () =>
  (await database.db.pool.query<{ ms: number }>('SELECT interval_ms AS ms FROM model_limits')).rows[0]?.ms

test('requests to a model are not delayed before its API has limited one', async () => {
  expect(await reserve()).toBeUndefined()
  await recordModelLimit(database.db, 'anthropic:y', 60_000)
  expect(await reserve()).toBeUndefined()
})

test('concurrent requests to a limited model get times in turn for about a second, and the others times to try again', async () => {
  await limit(0)
  const startedMs = performance.now()
  const slots = await Promise.all(Array.from({ length: 40 }, () => reserve()))
  const tookMs = performance.now() - startedMs
  const delaysOf = (isReserved: boolean) =>
    slots.flatMap((slot) => (slot?.isReserved === isReserved ? [slot.delayMs] : [])).toSorted((a, b) => a - b)
  const reserved = delaysOf(true)
  expect(reserved.length).toBeGreaterThan(1)
  // While the requests come, more times come within a second of now: fewer than one each 100 ms.
  expect(reserved.length).toBeLessThan(10 + tookMs / 100)
  expect(reserved.at(-1)).toBeLessThanOrEqual(1_000)
  const later = delaysOf(false)
  expect(later.at(-1)! - later[0]!).toBeGreaterThan(1_000)
  expect(later[0]).toBeGreaterThan(reserved.at(-1)!)
})

test('no request gets a time before the one that the API asked for, or later than its caller waits', async () => {
  const startedMs = performance.now()
  await limit(40_000)
  const slots = await Promise.all(Array.from({ length: 5 }, () => reserve()))
  expect(slots.every((slot) => slot?.isReserved === false)).toBe(true)
  const first = Math.min(...slots.map((slot) => slot!.delayMs))
  expect(first).toBeGreaterThan(39_990 - (performance.now() - startedMs))
  // The delays are from the clock of each request.
  const times = slots.map((slot) => slot!.delayMs - slot!.blockedMs)
  expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(400)
  await database.db.pool.query('UPDATE model_limits SET interval_ms = 60000')
  expect(await reserve()).toMatchObject({ isReserved: false })
  expect(await reserve(60_000)).toMatchObject({ isReserved: true })
})

test('the pace slows down once for requests that are limited together, and recovers with each request that is sent', async () => {
  await limit(60_000)
  const first = await readInterval()
  await Promise.all(Array.from({ length: 10 }, () => limit(60_000)))
  expect(await readInterval()).toBe(first)
  await age('2 minutes')
  await Promise.all(Array.from({ length: 10 }, () => limit(60_000)))
  const slow = await readInterval()
  expect(slow).toBe(first! * 1.3)
  await age('1 minute')
  await reserve(30_000, true)
  expect(await readInterval()).toBe(slow)
  await reserve()
  expect(await readInterval()).toBeLessThan(slow!)
})

test('a limit that was not reached for ten minutes is forgotten, but not while the API asks to wait', async () => {
  await limit(100)
  await age('11 minutes')
  expect(await reserve()).toBeUndefined()
  expect(await readInterval()).toBeUndefined()
  await limit(3_600_000)
  await age('11 minutes')
  expect(await reserve()).toMatchObject({ isReserved: false })
})
