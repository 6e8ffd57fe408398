import { expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { forgetRunners, holdRunnerLock, listUnlockedRunners } from '../src/index.ts'

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
