import { expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  forgetRunners,
  holdRunnerLock,
  isGaugeReporter,
  listUnlockedRunners,
  REPORTER_LEASE_MS,
  stopReportingGauges,
} from '../src/index.ts'

const database = useTestDatabase()

const countRunners = async () => (await database.db.pool.query('SELECT FROM runners')).rowCount

test('the lock of a runner is free as soon as its connection is gone, also for several that ask', async () => {
  const { db } = database
  const stopping = new AbortController()
  const holding = holdRunnerLock(db, "Ada's runner", stopping.signal)
  await waitUntil(async () => (await countRunners()) === 1)
  expect(await listUnlockedRunners(db)).toEqual([])
  stopping.abort()
  await holding
  await waitUntil(async () => (await listUnlockedRunners(db)).length === 1)
  expect(await Promise.all([listUnlockedRunners(db), listUnlockedRunners(db)])).toEqual([
    ["Ada's runner"],
    ["Ada's runner"],
  ])
  await forgetRunners(db, ["Ada's runner"])
  expect(await countRunners()).toBe(0)
})

test('the transaction of the lock holds back neither vacuum nor a migration', async () => {
  const { db } = database
  const stopping = new AbortController()
  const holding = holdRunnerLock(db, 'runner', stopping.signal)
  await waitUntil(async () => (await countRunners()) === 1)
  const { rows } = await db.pool.query(
    `SELECT backend_xid, backend_xmin,
       (SELECT json_agg(locktype ORDER BY locktype) FROM pg_locks WHERE pg_locks.pid = activity.pid) AS locks
     FROM pg_stat_activity AS activity WHERE datname = current_database() AND state = 'idle in transaction'`,
  )
  expect(rows).toEqual([{ backend_xid: null, backend_xmin: null, locks: ['advisory', 'virtualxid'] }])
  stopping.abort()
  await holding
})

const reportersAmong = async (owners: readonly string[]): Promise<string[]> => {
  const answers = await Promise.all(owners.map((owner) => isGaugeReporter(database.db, owner)))
  return owners.filter((_owner, index) => answers[index])
}

test('one process at a time reports the gauges of the whole system, also while another one takes over', async () => {
  const owners = ['a', 'b', 'c']
  const first = await reportersAmong(owners)
  expect(first).toHaveLength(1)
  for (let scrape = 0; scrape < 3; scrape += 1) expect(await reportersAmong(owners)).toEqual(first)

  // The reporter is no longer scraped.
  const others = owners.filter((owner) => owner !== first[0])
  expect(await reportersAmong(others)).toEqual([])
  await database.db.pool.query(`UPDATE gauge_reporters SET until = until - $1 * interval '1 millisecond'`, [
    REPORTER_LEASE_MS,
  ])
  const second = await reportersAmong(others)
  expect(second).toHaveLength(1)
  expect(await reportersAmong(owners)).toEqual(second)

  await stopReportingGauges(database.db, String(first[0]))
  expect(await reportersAmong(owners)).toEqual(second)
  await stopReportingGauges(database.db, String(second[0]))
  expect(await reportersAmong(first)).toEqual(first)
})
