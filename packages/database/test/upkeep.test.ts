import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { beginTransaction, failForOrganization, untilLocked } from '@workflow-service/testkit'
import { setProcessClock } from '@workflow-service/testkit/set-process-clock'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { PoolClient } from 'pg'
import {
  acquireSessions,
  acquireWaitingSessions,
  appendSteps,
  claimDeliveries,
  claimResend,
  createSession,
  deleteOrganization,
  deleteOrganizationRows,
  type Database,
  endWorkAfterRestore,
  findRunPrompts,
  findSession,
  findVisibleDelivery,
  findVisibleRun,
  finishRuns,
  leaseResendJob,
  listEarlierRuns,
  listSessions,
  listVisibleRuns,
  newId,
  NIL_UUID,
  OPERATOR,
  operatorOf,
  purgeDeletedWorkflows,
  readOverview,
  readUsage,
  recordAuditEvent,
  recordOutcomes,
  recordRunPrompt,
  recordStart,
  recordStarts,
  type RetentionBatch,
  type RetentionResult,
  rollUpUsage,
  serializeStep,
  showRun,
} from '../src/index.ts'
import { recordApplied } from '../src/manifest/index.ts'
import * as upkeep from '../src/upkeep/index.ts'
import { NOTICES_LOCK } from '../src/upkeep/notices.ts'
import { countPeriod } from '../src/upkeep/usage-count.ts'
import { explaining, readsOf } from './support/count-reads.ts'
import {
  ACCEPTED,
  ACQUIRE_ALL,
  createSource,
  createStartable,
  listWrongEnds,
  newClaim,
  newStart,
  start,
  type Startable,
} from './support/start-fixtures.ts'

const database = useTestDatabase()
let db: Database
let startable: Startable
let sourceId: string

beforeEach(async () => {
  ;({ db } = database)
  for (const table of ['deliveries', 'sessions', 'starts', 'organizations', 'usage_rollups'])
    await db.pool.query(`DELETE FROM ${table}`)
  startable = await createStartable(db)
  sourceId = await createSource(db, startable)
})

/** Ages a row, and all that belongs to it. */
async function age(startId: string, days: number): Promise<void> {
  for (const [table, key, columns] of [
    ['starts', 'id', ['created_at', 'started_at', 'finished_at']],
    ['run_steps', 'run_id', ['created_at']],
    ['deliveries', 'run_id', ['created_at', 'finished_at']],
    ['idempotency_keys', 'start_id', ['created_at']],
  ] as const) {
    const set = columns.map((column) => `${column} = ${column} - make_interval(days => $2)`).join(', ')
    await db.pool.query(`UPDATE ${table} SET ${set} WHERE ${key} = $1`, [startId, days])
  }
  await db.pool.query(
    `UPDATE sessions SET created_at = least(sessions.created_at, run.created_at), last_used_at = least(last_used_at, run.created_at)
     FROM starts AS run WHERE run.id = $1 AND sessions.id = run.session_id`,
    [startId],
  )
}

type Run = Awaited<ReturnType<typeof start>> & { deliveryId: string }

/** Starts and ends a run of one step and one delivery, and ages it. */
async function endedRun(
  days: number,
  { sessionId, outcome = 'accepted' }: { sessionId?: string; outcome?: 'accepted' | 'unknown' } = {},
): Promise<Run> {
  const started = await start(db, startable, sessionId ?? null)
  const { owner } = ACQUIRE_ALL
  const { sessions } = await acquireSessions(db, ACQUIRE_ALL, [started.sessionId])
  const { lease, run } = sessions[0]!
  const step = serializeStep({ kind: 'note', data: { code: 'payload_filled', text: 'a step' } })
  await appendSteps(db, owner, [{ lease, runId: started.startId, position: 0, steps: [step] }])
  const { organizationId } = startable
  const claim = newClaim(organizationId, sourceId, { runId: started.startId, lease })
  await claimDeliveries(db, [claim])
  await recordOutcomes(db, [{ organizationId, id: claim.id, result: { ...ACCEPTED, outcome } }])
  const end = { number: run!.number, status: 'succeeded', error: null, shouldClaimNext: false } as const
  await finishRuns(db, owner, [{ lease, ...end }])
  await age(started.startId, days)
  return { ...started, deliveryId: claim.id }
}

type DeleteBatch = (db: Pick<Database, 'pool'>, batch: RetentionBatch) => Promise<RetentionResult>

/** Runs all batches of the organization. Resolves to how many each deleted. */
async function deleteAll(deleteBatch: DeleteBatch, olderThanDays: number, batchSize = 100): Promise<number[]> {
  const counts: number[] = []
  let after: RetentionResult['next']
  do {
    const batch = { organizationId: startable.organizationId, olderThanDays, batchSize, after }
    const result = await deleteBatch(db, batch)
    counts.push(result.deleted)
    after = result.next
  } while (after)
  return counts
}

const runExists = async (startId: string): Promise<boolean> =>
  (await db.prisma.start.count({ where: { id: startId } })) === 1
const countSteps = async (runId: string): Promise<number> => await db.prisma.runStep.count({ where: { runId } })
const admin = () => ({ organizationId: startable.organizationId, memberId: null })

/**
 * Rolls up the hours of the last 8 days, and again those in which runs had not ended. Resolves to the usage, also of
 * the days that have starts.
 */
async function rollUp(by: 'workflow' | 'api_key') {
  await db.pool.query(`UPDATE organizations SET created_at = now() - interval '8 days';
    UPDATE usage_rollups SET rolled_up_at = now() - interval '1 hour'`)
  await rollUpUsage(db)
  const usage = await readUsage(db, admin(), { by, since: new Date(Date.now() - 8 * 86_400_000) })
  const days = usage.buckets.filter(({ starts }) => Object.keys(starts).length > 0)
  return { ...usage, days, starts: days.map(({ starts }) => starts) }
}

describe('old runs', () => {
  test('are deleted with their journals, and younger ones are kept; they are as old as their end, and are kept until they end', async () => {
    const [old, young, late] = [await endedRun(31), await endedRun(29), await endedRun(31)]
    const finishedAt = new Date(Date.now() - 86_400_000)
    await db.prisma.start.update({ where: { id: late.startId }, data: { finishedAt } })
    const waiting = await start(db, startable)
    await age(waiting.startId, 100)
    expect(await deleteAll(upkeep.deleteOldRuns, 30)).toEqual([1])
    const ids = [old, young, late, waiting].map(({ startId }) => startId)
    expect(await Promise.all(ids.map(runExists))).toEqual([false, true, true, true])
    expect(await Promise.all(ids.map(countSteps))).toEqual([0, 1, 1, 0])
  })

  test('are kept while a delivery in the log is unknown', async () => {
    const run = await endedRun(31, { outcome: 'unknown' })
    expect(await deleteAll(upkeep.deleteOldRuns, 30)).toEqual([0])
    await upkeep.deleteOldDeliveries(db, { olderThanDays: 29, batchSize: 10 })
    expect(await deleteAll(upkeep.deleteOldRuns, 30)).toEqual([1])
    expect(await runExists(run.startId)).toBe(false)
  })

  test('are kept while their Idempotency-Key is answered', async () => {
    const idempotency = { key: 'order-1', requestSha256: Buffer.alloc(32) }
    const again = () => recordStart(db, startable.organizationId, newStart(startable, { idempotency }))
    const first = await again()
    const { startId } = first as { startId: string }
    await db.pool.query(
      `UPDATE starts SET status = 'succeeded', created_at = now() - interval '2 days', finished_at = now() - interval '2 days'
       WHERE id = $1`,
      [startId],
    )
    expect(await deleteAll(upkeep.deleteOldRuns, 1)).toEqual([0])
    expect(await again()).toEqual({ ...first, kind: 'replayed' })
    await db.pool.query(`UPDATE idempotency_keys SET created_at = now() - interval '25 hours'`)
    expect(await deleteAll(upkeep.deleteOldRuns, 1)).toEqual([1])
    expect(await upkeep.deleteOldIdempotencyKeys(db, 10)).toBe(1)
  })

  test('are deleted in batches of runs, and of the rows and pieces of their journals', async () => {
    for (let n = 0; n < 5; n += 1) await endedRun(31)
    expect(await deleteAll(upkeep.deleteOldRuns, 30, 2)).toEqual([2, 2, 1])
    const large = [await endedRun(31), await endedRun(31), await endedRun(31)]
    for (const { startId } of large) {
      await db.pool.query(
        `INSERT INTO run_steps (run_id, position, kind, data, epoch)
         SELECT $1, n, 'note', '{}', 1 FROM generate_series(1, 12000) n`,
        [startId],
      )
    }
    expect(await deleteAll(upkeep.deleteOldRuns, 30)).toEqual([1, 1, 1])
    await db.pool.query('ALTER TABLE run_steps ALTER earlier_steps SET STORAGE EXTERNAL')
    for (const { startId } of [await endedRun(31), await endedRun(31)]) {
      await db.pool.query(
        `INSERT INTO run_steps (run_id, position, kind, data, earlier_steps, epoch)
         SELECT $1, 100, 'note', '{}', json_build_array(repeat('x', 22000000)), 1`,
        [startId],
      )
    }
    expect(await deleteAll(upkeep.deleteOldRuns, 30)).toEqual([1, 1])
  })

  test.each([
    ['a deleted workflow', 'workflows', async () => void (await purgeDeletedWorkflows(db, 500))],
    ['a deleted organization', 'organizations', async () => void (await deleteOrganizationRows(db))],
  ])('of %s are deleted in batches of the rows and pieces of their journals', async (_what, table, deleteBatch) => {
    for (let n = 0; n < 4; n += 1) await endedRun(0)
    await db.pool.query('ALTER TABLE run_steps ALTER data SET STORAGE EXTERNAL')
    await db.pool.query(
      `INSERT INTO run_steps (run_id, position, kind, data, epoch)
       SELECT id, 100, 'note', json_build_object('text', repeat('x', 24000000)), 1 FROM starts`,
    )
    await db.pool.query(`UPDATE ${table} SET deleted_at = now()`)
    const counts = [await db.prisma.start.count()]
    for (; counts.at(-1)! > 0 && counts.length < 10; counts.push(await db.prisma.start.count())) await deleteBatch()
    expect(counts).toEqual([4, 3, 2, 1, 0])
    expect(await db.prisma.runStep.count()).toBe(0)
  })

  test('wait until the usage has counted them, and are counted as before afterwards', async () => {
    for (let n = 0; n < 2; n += 1) await endedRun(3)
    const hour = `date_trunc('hour', now() - interval '4 days')`
    await db.pool.query(`INSERT INTO usage_rollups (hour, has_unfinished) VALUES (${hour}, false)`)
    expect(await deleteAll(upkeep.deleteOldRuns, 2)).toEqual([0])
    expect(await upkeep.deleteOldDeliveries(db, { olderThanDays: 1, batchSize: 10 })).toBe(0)
    await db.pool.query('DELETE FROM usage_rollups')
    const counted = [{ at: expect.any(String), starts: { succeeded: 2 }, deliveries: { accepted: 2 } }]
    expect((await rollUp('workflow')).days).toEqual(counted)
    expect(await deleteAll(upkeep.deleteOldRuns, 2)).toEqual([2])
    for (const count of [1, 1, 0]) {
      expect(await upkeep.deleteOldDeliveries(db, { olderThanDays: 1, batchSize: 1 })).toBe(count)
    }
    expect((await rollUp('workflow')).days).toEqual(counted)
    // Ten runs are no trial, also when they are deleted.
    await db.pool.query(`UPDATE usage_hours SET count = 10 WHERE measure = 'run_ms'`)
    expect((await readOverview(db, admin())).steps.has_run).toBe(true)
  })

  test('are counted once each where an hour has more of them than one batch', async () => {
    await endedRun(3)
    await db.pool.query(
      `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status,
         created_at, started_at, finished_at)
       SELECT gen_random_uuid(), organization_id, workflow_id, session_id, number + n, origin, context, request_id, status,
         created_at, started_at, finished_at FROM starts, generate_series(1, 10500) n`,
    )
    await db.pool.query(
      `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at, finished_at)
       SELECT gen_random_uuid(), organization_id, source_id, kind, outcome, status, '{}', created_at, finished_at
       FROM deliveries, generate_series(1, 10500)`,
    )
    const counted = { starts: { succeeded: 10_501 }, deliveries: { accepted: 10_501 } }
    expect((await rollUp('workflow')).days).toMatchObject([counted])
  })

  test('are each looked up once for their deliveries, also with a plan of emptied tables', async () => {
    await db.pool.query('VACUUM ANALYZE starts, deliveries')
    const { organizationId } = startable
    const period = { organizationId, since: new Date(0), until: new Date(Date.now() + 86_400_000) }
    const insertDeliveries = (runId: string, from: string) =>
      db.pool.query(
        `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, run_id, created_at, finished_at)
         SELECT gen_random_uuid(), $1, $2, 'payload', 'accepted', 200, '{}', ${runId}, now(), now() FROM ${from}`,
        [organizationId, sourceId],
      )
    await insertDeliveries('NULL', 'generate_series(1, 10)')
    const client = await db.pool.connect()
    try {
      const count = () => readsOf(client, ['starts'], (on) => countPeriod(on, period))
      await count()
      await start(db, startable)
      await db.pool.query(
        `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, created_at)
         SELECT gen_random_uuid(), organization_id, workflow_id, session_id, number + n, origin, context, request_id, status,
           created_at FROM starts, generate_series(1, 499) AS n`,
      )
      await insertDeliveries('id', 'starts')
      const { result, reads } = await count()
      expect(result).toContainEqual(expect.objectContaining({ kind: 'workflow', measure: 'deliveries', count: 500 }))
      expect(reads[0]!.rows).toBeLessThan(2_000)
    } finally {
      client.release()
    }
  })

  test('are not looked for, hour by hour, while there is no organization', async () => {
    await db.prisma.organization.deleteMany()
    expect(await rollUpUsage(db)).toEqual([])
  })

  test('are kept while their hour is counted again because of a run that has not ended', async () => {
    await endedRun(3)
    await db.pool.query(
      `INSERT INTO usage_rollups (hour, has_unfinished) VALUES
         (date_trunc('hour', now() - interval '3 days'), true), (date_trunc('hour', now() - interval '1 hour'), false)`,
    )
    expect(await deleteAll(upkeep.deleteOldRuns, 2)).toEqual([0])
    expect(await deleteAll(upkeep.deleteOldJournals, 2)).toEqual([0])
    await db.pool.query('UPDATE usage_rollups SET has_unfinished = false')
    expect(await deleteAll(upkeep.deleteOldJournals, 2)).toEqual([1])
    expect(await deleteAll(upkeep.deleteOldRuns, 2)).toEqual([1])
  })

  test('of a deleted workflow stay counted when their hour is counted again', async () => {
    for (let n = 0; n < 2; n += 1) await endedRun(3)
    const unfinished = await start(db, startable)
    await age(unfinished.startId, 3)
    expect((await rollUp('api_key')).starts).toEqual([{ succeeded: 2, queued: 1 }])
    const workflowId = newId()
    const other = { id: workflowId, name: 'Other', description: '', scope: 'company_wide', searchText: '' }
    await db.prisma.workflow.create({ data: { ...other, organizationId: startable.organizationId, isActive: true } })
    await db.pool.query('UPDATE starts SET workflow_id = $2 WHERE id <> $1', [unfinished.startId, workflowId])
    await db.pool.query('UPDATE workflows SET deleted_at = now() WHERE id = $1', [workflowId])
    expect(await purgeDeletedWorkflows(db, 10)).toBe(3)
    await acquireSessions(db, ACQUIRE_ALL, [unfinished.sessionId])
    expect((await rollUp('api_key')).starts).toEqual([{ succeeded: 2, running: 1 }])
  })

  test('are counted by how they ended, also those whose payload waited for an approval for 7 days', async () => {
    const { startId } = await start(db, startable)
    await db.pool.query(
      `UPDATE starts SET status = 'waiting', created_at = now() - interval '170 hours' WHERE id = $1`,
      [startId],
    )
    expect((await rollUp('workflow')).starts).toEqual([{ waiting: 1 }])
    await db.pool.query(
      `UPDATE starts SET status = 'failed', error = 'approval_expired: No.', finished_at = now() WHERE id = $1`,
      [startId],
    )
    expect((await rollUp('workflow')).starts).toEqual([{ failed: 1 }])
  })

  test('that were deleted keep what they cost in the usage, also when as many others of their hour are left', async () => {
    const run = await endedRun(3)
    await db.pool.query(
      `INSERT INTO run_steps (run_id, position, kind, data, epoch)
       VALUES ($1, 9, 'model_answer', '{"model":"m","input_tokens":2,"cost_micros":7}', 1)`,
      [run.startId],
    )
    await age((await start(db, startable)).startId, 3)
    await rollUp('api_key')
    expect(await upkeep.deleteRun(db, run.startId)).toBe('deleted')
    expect((await rollUp('api_key')).days).toMatchObject([{ deliveries: { accepted: 1 } }])
    await endedRun(3)
    const starts = { succeeded: 1, queued: 1 }
    expect((await rollUp('api_key')).groups).toMatchObject([{ starts, tokens: 2, cost_micros: 7 }])
  })

  test('that are deleted leave their error in no notice, also in one that is being recorded', async () => {
    const { organizationId } = startable
    const { startId } = await endedRun(0)
    await db.pool.query(
      `UPDATE starts SET status = 'failed', error = 'order_refused: No orders of Ada.', not_succeeded_at = finished_at WHERE id = $1`,
      [startId],
    )
    await db.pool.query(`INSERT INTO notice_webhooks (organization_id, url) VALUES ($1, 'https://example.com/')`, [
      organizationId,
    ])
    using blocker = await beginTransaction(db.pool)
    await blocker.query('SELECT FROM organizations WHERE id = $1 FOR UPDATE', [organizationId])
    const recorded = upkeep.recordNotices(db, organizationId, false)
    await untilLocked(db.pool, 'INSERT INTO notices')
    const deleted = upkeep.deleteRun(db, startId)
    await Promise.race([deleted, untilLocked(db.pool, 'pg_advisory_xact_lock')])
    await blocker.query('ROLLBACK')
    expect(await Promise.all([recorded, deleted])).toEqual([1, 'deleted'])
    const { rows } = await db.pool.query<{ text: string }>(`SELECT body ->> 'text' AS text FROM notices`)
    expect(rows).toEqual([{ text: expect.stringMatching(/ failed: The run was deleted\.$/) }])
  })

  test('that are deleted leave no payload that is sent again at the same moment', async () => {
    const { organizationId } = startable
    const { startId: runId, deliveryId: of } = await endedRun(0)
    using blocker = await beginTransaction(db.pool)
    await blocker.query(`SELECT pg_advisory_xact_lock(${NOTICES_LOCK})`, [organizationId])
    const deleted = upkeep.deleteRun(db, runId)
    await untilLocked(db.pool, 'pg_advisory_xact_lock')
    const resend = { of, firstId: of, sentBy: null, sessionId: null }
    const claimed = claimResend(db, { ...newClaim(organizationId, sourceId, { runId }), resend })
    await Promise.race([claimed, untilLocked(db.pool, 'KEY SHARE')])
    await blocker.query('ROLLBACK')
    expect(await Promise.all([deleted, claimed])).toEqual(['deleted', { kind: 'earlier_deleted' }])
    expect(await db.prisma.delivery.count()).toBe(0)
  })

  test('are not found any more, while their deliveries stay for admins', async () => {
    const run = await endedRun(31)
    await deleteAll(upkeep.deleteOldRuns, 30)
    expect(await findVisibleRun(db, admin(), run.startId)).toBeUndefined()
    expect(await listVisibleRuns(db, admin(), { limit: 10 })).toEqual([])
    const member = { ...admin(), memberId: newId() }
    expect(await findVisibleDelivery(db, member, run.deliveryId)).toBeUndefined()
    const left = { run_id: run.startId, workflow: null, agent_answer: null }
    expect(await findVisibleDelivery(db, admin(), run.deliveryId)).toMatchObject(left)
    const resend = { of: run.deliveryId, firstId: run.deliveryId, sentBy: null, sessionId: run.sessionId }
    const again = newClaim(startable.organizationId, sourceId, { runId: run.startId, resend })
    expect(await claimDeliveries(db, [again])).toMatchObject([{ kind: 'claimed' }])
  })
})

describe('the usage', () => {
  test('has nothing of an organization that was deleted while it was counted', async () => {
    const { organizationId, workflowId } = startable
    await db.pool.query(`UPDATE organizations SET created_at = now() - interval '4 days'`)
    await endedRun(3)
    let isDeleted = false
    const pace = async () => {
      if (isDeleted) return
      isDeleted = true
      await deleteOrganization(db, operatorOf(organizationId))
      while (await deleteOrganizationRows(db));
    }
    await rollUpUsage(db, { pace })
    // Of a trial that was under way.
    const answers = [{ model: 'm', tokens: 2, cost: 7 }]
    await upkeep.countTrial(db, { organizationId, workflowId, answers })
    expect(await db.pool.query('SELECT FROM usage_hours')).toMatchObject({ rowCount: 0 })
  })

  afterEach(() => void jest.useRealTimers())

  test.each([-1, 1, 24])(
    'ends with this hour of the database, in a process whose clock is %d h ahead',
    async (hours) => {
      await start(db, startable)
      const first = new Date(Date.now() - 86_400_000)
      setProcessClock(hours * 3_600_000)
      const { starts } = await readOverview(db, admin())
      const { buckets } = await readUsage(db, admin(), { by: 'workflow', since: first })
      expect([starts, buckets.at(-1)?.starts, buckets.length]).toEqual([{ queued: 1 }, { queued: 1 }, 25])
    },
  )
})

test('the usage of days counts nothing of a day (UTC) before the hour at which the period begins', async () => {
  const day = new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10)
  await db.pool.query(`INSERT INTO usage_rollups (hour, has_unfinished) VALUES (date_trunc('hour', now()), false)`)
  for (const [hour, count] of Object.entries({ '03:00Z': 1, '04:00Z': 2, '23:00Z': 4 })) {
    await db.pool.query(
      `INSERT INTO usage_hours (organization_id, kind, hour, thing_id, measure, label, count)
       SELECT $1, kind, $2, $3, 'starts', 'succeeded', $4 FROM unnest(ARRAY['organization', 'workflow']) AS kind`,
      [startable.organizationId, `${day} ${hour}`, startable.workflowId, count],
    )
  }
  const { buckets, groups } = await readUsage(db, admin(), { by: 'workflow', since: new Date(`${day}T04:30:00Z`) })
  expect(buckets[0]).toMatchObject({ at: `${day}T00:00:00.000Z`, starts: { succeeded: 6 } })
  expect(groups[0]?.starts).toEqual({ succeeded: 6 })
})

test('the usage of runs of a model is counted without comparing each run with each', async () => {
  const { startId } = await endedRun(0)
  await db.pool.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status,
       created_at, started_at, finished_at)
     SELECT gen_random_uuid(), organization_id, workflow_id, session_id, number + n, origin, context, request_id, status,
       created_at, started_at, finished_at FROM starts, generate_series(1, 499) AS n WHERE id = $1`,
    [startId],
  )
  await db.pool.query(
    `INSERT INTO run_steps (run_id, position, kind, data, epoch)
     SELECT id, 1, 'model_answer', '{"model": "m", "input_tokens": 2, "output_tokens": 1, "cost_micros": 7}', 1 FROM starts`,
  )
  const { on, mostCompared } = explaining(db)
  const { groups } = await readUsage(on, admin(), { by: 'model' })
  expect(groups).toMatchObject([{ name: 'm', starts: { answers: 500 }, tokens: 1_500, cost_micros: 3_500 }])
  const { groups: workflows } = await readUsage(db, admin(), { by: 'workflow' })
  expect(workflows).toMatchObject([{ starts: { succeeded: 500 }, tokens: 1_500, cost_micros: 3_500 }])
  expect(mostCompared()).toBeLessThanOrEqual(500)
})

test('The usage of more than 100 things has all of them, those that are used least as one', async () => {
  const hour = new Date(Date.now() - 86_400_000)
  const use = (from: number, to: number) =>
    db.pool.query(
      `INSERT INTO usage_hours (organization_id, kind, hour, thing_id, measure, label, count, tokens)
       SELECT $1, 'model', date_trunc('hour', $2::timestamptz), $3, 'answers', 'model-' || n, 1000 - n, n
       FROM generate_series($4::integer, $5::integer) AS n`,
      [startable.organizationId, hour, startable.workflowId, from, to],
    )
  const groups = async () => (await readUsage(db, admin(), { by: 'model', since: hour })).groups
  await db.pool.query(`INSERT INTO usage_rollups (hour, has_unfinished) VALUES (date_trunc('hour', now()), false)`)
  await use(1, 100)
  expect((await groups()).map(({ name }) => name)).toEqual(Array.from({ length: 100 }, (_, n) => `model-${n + 1}`))
  await use(101, 102)
  const last = (await groups()).slice(98)
  expect(last).toMatchObject([
    { name: 'model-99', tokens: 99 },
    { id: null, name: '3 others', starts: { answers: 900 + 899 + 898 }, tokens: 100 + 101 + 102 },
  ])
  expect(last).toHaveLength(2)
})

test.each(['admin', 'member'] as const)('the usage of %s is read in a row a workflow, and one a day', async (role) => {
  const [days, workflows] = [60, 50]
  const { organizationId } = startable
  await db.pool.query(
    `WITH workflow AS (
       INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
       SELECT gen_random_uuid(), $1, 'w', '', 'company_wide', 'w', true FROM generate_series(1, $2::integer) RETURNING id
     ),
     used AS (
       SELECT id, date_trunc('day', now(), 'UTC') - n * interval '1 day' AS hour
       FROM workflow, generate_series(1, $3::integer) AS n
     )
     INSERT INTO usage_hours (organization_id, kind, hour, thing_id, measure, label, count)
     SELECT $1, 'workflow', hour, id, 'starts', 'succeeded', 2 FROM used
     UNION ALL SELECT $1, 'organization', hour, $4, 'starts', 'succeeded', 2 * $2 FROM used GROUP BY hour`,
    [organizationId, workflows, days, NIL_UUID],
  )
  await db.pool.query(`INSERT INTO usage_rollups (hour, has_unfinished) VALUES (date_trunc('hour', now()), false)`)
  let read = 0
  const query = async (text: string, values: unknown[]) => {
    const result = await db.pool.query(text, values)
    read += result.rows.length
    return result
  }
  const viewer = { organizationId, memberId: role === 'member' ? newId() : null }
  const usage = (thingId?: string) =>
    readUsage({ pool: { query } } as never, viewer, {
      by: 'workflow',
      since: new Date(Date.now() - (days + 1) * 86_400_000),
      thingId,
    })
  const { buckets, groups } = await usage()
  expect(groups.map(({ starts }) => starts)).toEqual(Array.from({ length: workflows }, () => ({ succeeded: 2 * days })))
  const used = buckets.filter(({ starts }) => starts['succeeded'] === 2 * workflows)
  expect(used).toHaveLength(days)
  // The workflows with their counts, the days, and a few values.
  expect(read).toBeLessThanOrEqual(2 * workflows + days + 10)
  read = 0
  const ofOne = await usage(groups[0]!.id!)
  expect(ofOne.groups).toEqual([groups[0]])
  expect(ofOne.buckets.filter(({ starts }) => starts['succeeded'] === 2)).toHaveLength(days)
  expect(read).toBeLessThanOrEqual(days + 10)
})

describe('old journals', () => {
  test('are deleted with their prompts, and their runs stay', async () => {
    const [old, young] = [await endedRun(31), await endedRun(29)]
    const prompt = { instructions: 'Send orders.', tools: [], message: 'Order 17' }
    for (const { startId } of [old, young]) await recordRunPrompt(db, startId, 1, prompt)
    expect(await deleteAll(upkeep.deleteOldJournals, 30)).toEqual([1])
    const prompts = [old, young].map(({ startId }) => findRunPrompts(db, admin(), startId))
    expect((await Promise.all(prompts)).map((found) => found?.prompts.length)).toEqual([0, 1])
    expect(await Promise.all([old, young].map(({ startId }) => countSteps(startId)))).toEqual([0, 1])
    expect(await findVisibleRun(db, admin(), old.startId)).toMatchObject({ status: 'succeeded', steps: [] })
    const next = await start(db, startable, old.sessionId)
    const before = { sessionId: next.sessionId, number: 2, limit: 10 }
    const earlier = await listEarlierRuns(db, startable.organizationId, before)
    expect(earlier).toMatchObject([{ runId: old.startId, steps: [] }])
  })

  test('are looked for once: a batch begins where the one before ended, also after a crash', async () => {
    for (let n = 0; n < 4; n += 1) await endedRun(31)
    const batch = { organizationId: startable.organizationId, olderThanDays: 30, batchSize: 2 }
    using crashed = await beginTransaction(db.pool)
    const inCrash = { pool: crashed as unknown as Database['pool'] }
    expect(await upkeep.deleteOldJournals(inCrash, batch)).toMatchObject({ deleted: 2 })
    await crashed.query('ROLLBACK')
    expect(await upkeep.deleteOldJournals(db, batch)).toMatchObject({ deleted: 2 })
    expect(await upkeep.deleteOldJournals(db, batch)).toMatchObject({ deleted: 2 })
    expect(await upkeep.deleteOldJournals(db, batch)).toEqual({ deleted: 0, next: undefined })
  })

  test('of a run that waited for days are deleted once it has ended for so long, as those accepted after it', async () => {
    const [before, waited, after] = [await endedRun(33), await endedRun(31), await endedRun(31)]
    await db.pool.query(`UPDATE starts SET finished_at = now() - interval '29 days' WHERE id = $1`, [waited.startId])
    const steps = () => Promise.all([before, waited, after].map(({ startId }) => countSteps(startId)))
    await deleteAll(upkeep.deleteOldJournals, 30)
    expect(await steps()).toEqual([0, 1, 1])
    await db.pool.query(
      `UPDATE starts SET created_at = created_at - interval '2 days', finished_at = finished_at - interval '2 days'`,
    )
    await deleteAll(upkeep.deleteOldJournals, 30)
    expect(await steps()).toEqual([0, 0, 0])
  })

  test('are not kept for a run that was accepted before them and took more than 8 days', async () => {
    const [long, after] = [await endedRun(38), await endedRun(31)]
    await db.pool.query(`UPDATE starts SET finished_at = now() - interval '29 days' WHERE id = $1`, [long.startId])
    await deleteAll(upkeep.deleteOldJournals, 30)
    expect(await Promise.all([long, after].map(({ startId }) => countSteps(startId)))).toEqual([1, 0])
  })

  test('of a run that had not ended go with the run', async () => {
    const run = await endedRun(31)
    await db.pool.query(`UPDATE starts SET status = 'queued', finished_at = NULL WHERE id = $1`, [run.startId])
    expect(await deleteAll(upkeep.deleteOldJournals, 30)).toEqual([0])
    const end = `UPDATE starts SET status = 'succeeded', finished_at = now() - interval '31 days' WHERE id = $1`
    await db.pool.query(end, [run.startId])
    expect(await deleteAll(upkeep.deleteOldJournals, 30)).toEqual([0])
    await deleteAll(upkeep.deleteOldRuns, 30)
    expect(await countSteps(run.startId)).toBe(0)
  })
})

describe('old sessions', () => {
  test('are deleted after their last start and their runs, open or closed', async () => {
    const gone = await endedRun(31)
    const withRun = await endedRun(31)
    const continued = await endedRun(31)
    await endedRun(1, { sessionId: continued.sessionId })
    const opened = newId()
    await createSession(db, opened, operatorOf(startable.organizationId))
    expect(await deleteAll(upkeep.deleteOldSessions, 30)).toEqual([0])
    await db.prisma.start.delete({ where: { id: gone.startId } })
    expect(await deleteAll(upkeep.deleteOldSessions, 30)).toEqual([1])
    expect(await findSession(db, admin(), gone.sessionId)).toBeUndefined()
    expect((await listSessions(db, admin(), { limit: 10 })).rows.map(({ id }) => id).toSorted()).toEqual(
      [withRun.sessionId, continued.sessionId, opened].toSorted(),
    )
    const refused = await recordStart(db, startable.organizationId, newStart(startable, { sessionId: gone.sessionId }))
    expect(refused).toEqual({ kind: 'session_not_found' })
  })

  test('that a customer continues are kept, also if their runs are deleted', async () => {
    const { sessionId } = await endedRun(31)
    const { startId } = await endedRun(3, { sessionId })
    await deleteAll(upkeep.deleteOldRuns, 2)
    expect(await runExists(startId)).toBe(false)
    await db.pool.query(`UPDATE sessions SET last_used_at = now() - interval '3 days'`)
    expect(await deleteAll(upkeep.deleteOldSessions, 30)).toEqual([0])
    expect(await start(db, startable, sessionId)).toMatchObject({ sessionId })
    expect((await findSession(db, admin(), sessionId))?.start_count).toBe(3)
  })

  test('are not deleted under a start', async () => {
    const { sessionId, startId } = await endedRun(31)
    await deleteAll(upkeep.deleteOldRuns, 30)
    expect(await runExists(startId)).toBe(false)
    using other = await beginTransaction(db.pool)
    await recordStartOn(other, sessionId)
    expect(await deleteAll(upkeep.deleteOldSessions, 30)).toEqual([0])
    await other.query('COMMIT')
    expect(await deleteAll(upkeep.deleteOldSessions, 30)).toEqual([0])
  })
})

/** Records a start in the session, in the transaction of this connection. */
async function recordStartOn(client: PoolClient, sessionId: string): Promise<void> {
  const request = { organizationId: startable.organizationId, start: newStart(startable, { sessionId }) }
  const outcomes = await recordStarts({ pool: client as unknown as Database['pool'] }, [request])
  expect(outcomes).toMatchObject([{ kind: 'accepted' }])
}

test('two processes share the work, and neither waits for the other', async () => {
  // Makes the row in which the progress is stored.
  await deleteAll(upkeep.deleteOldJournals, 30)
  for (let n = 0; n < 6; n += 1) await endedRun(31)
  using other = await beginTransaction(db.pool)
  const batch = { organizationId: startable.organizationId, olderThanDays: 30, batchSize: 3 }
  const inOther = { pool: other as unknown as Database['pool'] }
  expect(await upkeep.deleteOldJournals(inOther, batch)).toMatchObject({ deleted: 3 })
  expect(await upkeep.deleteOldJournals(db, batch)).toEqual({ deleted: 0, next: undefined })
  expect(await upkeep.deleteOldRuns(inOther, batch)).toMatchObject({ deleted: 3 })
  expect(await deleteAll(upkeep.deleteOldRuns, 30, 3)).toEqual([0, 3, 0])
  await other.query('COMMIT')
  expect(await db.prisma.start.count()).toBe(0)
})

describe('the audit log', () => {
  test("has entries in the order of the database's clock, not of the clocks of the processes that add them", async () => {
    using client = await beginTransaction(db.pool)
    await client.query(`CREATE SCHEMA ahead;
      CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz VOLATILE
        RETURN pg_catalog.clock_timestamp() + interval '1 hour';
      SET LOCAL search_path = ahead, pg_catalog, public`)
    const { organizationId } = startable
    await recordAuditEvent(client, { actor: OPERATOR, organizationId, action: 'organization.saved' })
    const thing = { kind: 'workflow', id: newId(), name: 'A', outcome: 'changed', changes: [] } as const
    await recordApplied(client, organizationId, [thing, { ...thing, id: newId() }])
    const { rows } = await client.query<{ id: string; hours: number }>(
      `SELECT id, ((('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint) / 1000.0
         - extract(epoch FROM now()))::float8 / 3600 AS hours
       FROM audit_events WHERE at = now()::timestamptz(3) ORDER BY id`,
    )
    expect(rows.map(({ hours }) => hours.toFixed(2))).toEqual(['1.00', '1.00', '1.00'])
    for (const { id } of rows)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test('loses what is older, in batches', async () => {
    const { organizationId } = startable
    const record = async (days: number) => {
      await recordAuditEvent(db.pool, { actor: OPERATOR, organizationId, action: 'manifest.applied' })
      const old = new Date(Date.now() - days * 86_400_000)
      await db.pool.query(
        `UPDATE audit_events SET at = $1, id = (lpad(to_hex($2::bigint), 12, '0') || right(replace(id::text, '-', ''), 20))::uuid
         WHERE at > now() - interval '1 minute'`,
        [old, old.getTime()],
      )
    }
    await db.prisma.auditEvent.deleteMany()
    for (const days of [31, 31, 31, 29]) await record(days)
    const options = { olderThanDays: 30, batchSize: 2 }
    expect(await upkeep.deleteOldAuditEvents(db, options)).toBe(2)
    expect(await upkeep.deleteOldAuditEvents(db, options)).toBe(1)
    expect(await upkeep.deleteOldAuditEvents(db, options)).toBe(0)
    expect(await db.prisma.auditEvent.count()).toBe(1)
  })
})

describe('an organization whose statements fail does not hold up', () => {
  let other: Startable
  let fail: (table: string) => Promise<void>
  let mend: () => Promise<void>
  beforeEach(async () => {
    other = await createStartable(db)
    fail = async (table) => void (mend = await failForOrganization(db.pool, table, startable.organizationId))
  })
  afterEach(async () => await mend())

  test('the usage of the others, and is counted again within minutes', async () => {
    await db.pool.query(`UPDATE organizations SET created_at = now() - interval '5 hours'`)
    for (const each of [startable, other]) {
      const { startId } = await start(db, each)
      await db.pool.query(`UPDATE starts SET created_at = now() - interval '4 hours' WHERE id = $1`, [startId])
    }
    const counted = async () => {
      const { rows } = await db.pool.query('SELECT organization_id AS id FROM usage_hours')
      return rows.map(({ id }) => id as string)
    }
    await fail('usage_hours')
    await expect(rollUpUsage(db)).rejects.toThrow(startable.organizationId)
    expect(new Set(await counted())).toEqual(new Set([other.organizationId]))
    expect(await rollUpUsage(db)).not.toEqual([])
    expect(await rollUpUsage(db)).toEqual([])
    await mend()
    await db.pool.query(`UPDATE usage_rollups SET rolled_up_at = rolled_up_at - interval '1 minute'`)
    expect(await rollUpUsage(db)).toHaveLength(1)
    expect(await counted()).toContain(startable.organizationId)
  })

  test('the usage of later hours, and loses none of an old hour that is counted late', async () => {
    await db.pool.query(`UPDATE organizations SET created_at = now() - interval '10 days'`)
    const { startId } = await endedRun(10)
    const countHours = async (table: string) => (await db.pool.query(`SELECT DISTINCT hour FROM ${table}`)).rows.length
    await fail('usage_hours')
    await expect(rollUpUsage(db)).rejects.toThrow(startable.organizationId)
    await rollUpUsage(db)
    expect(await countHours('usage_rollups')).toBeGreaterThan(230)
    await deleteAll(upkeep.deleteOldRuns, 1)
    expect(await runExists(startId)).toBe(true)
    await mend()
    await db.pool.query(`UPDATE usage_rollups SET rolled_up_at = rolled_up_at - interval '1 minute'`)
    expect(await rollUpUsage(db)).toHaveLength(1)
    expect(await countHours('usage_hours')).toBe(1)
    expect(await rollUpUsage(db)).toEqual([])
    await deleteAll(upkeep.deleteOldRuns, 1)
    expect(await runExists(startId)).toBe(false)
  })

  test('the deletion of journals for longer than 9 days', async () => {
    await db.pool.query(`UPDATE organizations SET created_at = now() - interval '10 days'`)
    const old = await endedRun(10)
    const younger = await endedRun(8)
    await fail('usage_hours')
    await expect(rollUpUsage(db)).rejects.toThrow(startable.organizationId)
    await expect(rollUpUsage(db)).rejects.toThrow(startable.organizationId)
    await rollUpUsage(db)
    await deleteAll(upkeep.deleteOldJournals, 1)
    expect([await countSteps(old.startId), await countSteps(younger.startId)]).toEqual([0, 1])
  })

  test('the deletion of the workflows of the others', async () => {
    await db.pool.query(
      'UPDATE workflows SET deleted_at = now() - make_interval(mins => (organization_id = $1)::int)',
      [startable.organizationId],
    )
    await fail('workflows')
    expect(await purgeDeletedWorkflows(db, 10)).toBe(1)
    await expect(purgeDeletedWorkflows(db, 10)).rejects.toThrow(startable.workflowId)
    expect(await db.prisma.workflow.findMany()).toMatchObject([{ id: startable.workflowId }])
  })

  test('the deletion of other organizations', async () => {
    for (const { organizationId } of [startable, other]) await deleteOrganization(db, operatorOf(organizationId))
    await fail('workflows')
    const deleteAllRows = async () => {
      while (await deleteOrganizationRows(db));
    }
    await expect(deleteAllRows()).rejects.toThrow(startable.organizationId)
    const purged = await db.prisma.organization.findMany({ where: { purgedAt: { not: null } } })
    expect(purged).toMatchObject([{ id: other.organizationId }])
  })
})

test('a deleted organization is purged, however many that cannot be were deleted before it', async () => {
  for (let n = 1; n < 20; n += 1) await createStartable(db)
  const locked = await db.prisma.organization.findMany()
  const { organizationId } = await createStartable(db)
  for (const { id } of locked) await deleteOrganization(db, operatorOf(id))
  await deleteOrganization(db, operatorOf(organizationId))
  using client = await beginTransaction(db.pool)
  await client.query('SELECT FROM workflows WHERE organization_id <> $1 FOR UPDATE', [organizationId])
  const purged = () => db.prisma.organization.findMany({ where: { purgedAt: { not: null } } })
  for (let call = 0; call < 40 && (await purged()).length === 0; call += 1) await deleteOrganizationRows(db)
  expect(await purged()).toMatchObject([{ id: organizationId }])
})

describe('the end of work after a restore', () => {
  test('ends what was under way at the restored moment, so that no runner does it again, and later starts run', async () => {
    const running = await start(db, startable)
    const queued = await start(db, startable, running.sessionId)
    const { sessions } = await acquireWaitingSessions(db, ACQUIRE_ALL)
    const lease = sessions[0]!.lease
    const untouched = await start(db, startable)
    const delivery = newClaim(startable.organizationId, sourceId, { runId: running.startId, lease })
    expect(await claimDeliveries(db, [delivery])).toMatchObject([{ kind: 'claimed' }])
    await db.pool.query(
      `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
       VALUES ($1, $2, $3, $4, 'Orders', '{}', now() + interval '1 day')`,
      [newId(), startable.organizationId, queued.startId, sourceId],
    )

    await db.pool.query(
      `INSERT INTO resend_jobs (id, organization_id, delivery_ids, resend_ids, per_second, created_by_name)
       VALUES ($1, $2, $3, $4, 1, 'Ada')`,
      [newId(), startable.organizationId, [delivery.id], [newId()]],
    )

    expect(await endWorkAfterRestore(db)).toEqual({ runs: 3, deliveries: 1, schedules: 0, resendJobs: 1 })

    const failed = { status: 'failed', error: expect.stringMatching(/^interrupted_by_restore: /) }
    for (const { startId } of [running, queued, untouched]) expect(await showRun(db, startId)).toMatchObject(failed)
    expect(await listWrongEnds(db)).toEqual([])
    const states = `SELECT (SELECT outcome FROM deliveries) AS delivery, (SELECT status FROM approvals) AS approval`
    const { rows } = await db.pool.query(states)
    expect(rows).toEqual([{ delivery: 'unknown', approval: 'expired' }])
    expect(await acquireWaitingSessions(db, ACQUIRE_ALL)).toMatchObject({ sessions: [] })
    expect(await claimDeliveries(db, [{ ...delivery, id: newId() }])).toEqual([{ kind: 'lease_lost' }])
    expect(await leaseResendJob(db)).toBeUndefined()
    expect(await endWorkAfterRestore(db)).toEqual({ runs: 0, deliveries: 0, schedules: 0, resendJobs: 0 })

    const later = await start(db, startable, running.sessionId)
    expect(await acquireWaitingSessions(db, ACQUIRE_ALL)).toMatchObject({ sessions: [{ run: { id: later.startId } }] })
  })

  test('a schedule that was due since the restored moment waits for its next time, and one in the future stays', async () => {
    const daily = { autoRunEnabled: true, autoRunFrequency: 'daily', autoRunAnchorAt: new Date('2026-03-01T09:20:00Z') }
    const schedule = async (next: string) =>
      await createStartable(db, { autoRun: { ...daily, autoRunNextAt: new Date(next) } })
    const [due, future] = [await schedule('2026-03-02T09:20:00Z'), await schedule('2126-03-02T09:20:00Z')]
    const nextOf = async (id: string) => (await db.prisma.workflow.findUniqueOrThrow({ where: { id } })).autoRunNextAt

    expect(await endWorkAfterRestore(db)).toMatchObject({ schedules: 1 })

    const next = (await nextOf(due.workflowId))!
    expect(next.toISOString()).toMatch(/T09:20:00\.000Z$/)
    expect(next.getTime() - Date.now()).toBeGreaterThan(0)
    expect(next.getTime() - Date.now()).toBeLessThanOrEqual(86_400_000)
    expect(await nextOf(future.workflowId)).toEqual(new Date('2126-03-02T09:20:00Z'))
  })
})
