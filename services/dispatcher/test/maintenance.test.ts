import { beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { createCapturedLogger, failForOrganization, waitUntil } from '@workflow-service/testkit'
import { createMetrics } from '@workflow-service/service-kit'
import { DELIVERY_DEADLINE_MS } from '../src/deliveries/deadlines.ts'
import { createDeliveryMetrics } from '../src/metrics.ts'
import { applyRetention } from '../src/retention.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const KEEP = { deliveries: 0, journals: 0, runs: 0, sessions: 0, auditEvents: 0 }
const DAY_MS = 86_400_000
// The dispatcher's own retention is off: each test runs it itself. Its deadline is so long that it marks no entry as
// unknown in the meantime.
const dispatcher = useDispatcher(
  { deliveryDeadlineMs: 1_000 * DAY_MS },
  {
    DELIVERY_LOG_RETENTION_DAYS: '0',
    JOURNAL_RETENTION_DAYS: '0',
    RUN_RETENTION_DAYS: '0',
    SESSION_RETENTION_DAYS: '0',
    AUDIT_RETENTION_DAYS: '0',
  },
)

beforeEach(async () => {
  await dispatcher.db.prisma.delivery.deleteMany()
})

/** Records entries of one source with the given ages. */
async function record(sourceId: string, agesMs: number[], outcome = 'accepted'): Promise<void> {
  await dispatcher.db.prisma.delivery.createMany({
    data: agesMs.map((ageMs) => ({
      id: newId(),
      organizationId: dispatcher.organizationId,
      sourceId,
      kind: 'payload',
      outcome,
      status: outcome === 'accepted' ? 200 : null,
      requestBody: {},
      createdAt: new Date(Date.now() - ageMs),
      finishedAt: outcome === 'in_flight' ? null : new Date(),
    })),
  })
}

const countEntries = (sourceId: string): Promise<number> => dispatcher.db.prisma.delivery.count({ where: { sourceId } })

const apply = (days: Partial<typeof KEEP>, signal = new AbortController().signal) => {
  const ctx = {
    db: dispatcher.db,
    config: { ...dispatcher.config, retentionDays: { ...KEEP, ...days } },
    logger: createCapturedLogger().logger,
    deliveryMetrics: createDeliveryMetrics(createMetrics('test'), {
      inFlight: () => 0,
      waiting: () => 0,
      unrecorded: () => 0,
    }),
  }
  return applyRetention(ctx, signal)
}
const deleteOld = async (days: number): Promise<number> => (await apply({ deliveries: days })).deliveries

describe('the retention', () => {
  test('deletes the entries of every source on the day after they are older than its days, but none in flight', async () => {
    const sources = Array.from({ length: 5 }, newId)
    for (const source of sources) await record(source, [92 * DAY_MS, 91.01 * DAY_MS, 89.9 * DAY_MS, 0])
    const kept = newId()
    await record(kept, [1, 2])
    await record(kept, [100 * DAY_MS], 'in_flight')
    expect(await deleteOld(90)).toBe(10)
    expect(await Promise.all(sources.map(countEntries))).toEqual([2, 2, 2, 2, 2])
    expect(await countEntries(kept)).toBe(3)
    expect(await deleteOld(90)).toBe(0)
  })

  test('deletes jobs that sent payloads again for as long, from their end, and none that is running', async () => {
    await dispatcher.db.pool.query(
      `INSERT INTO resend_jobs (id, organization_id, status, delivery_ids, resend_ids, per_second, created_at, finished_at)
       SELECT gen_random_uuid(), $1, CASE WHEN days IS NULL THEN 'running' ELSE 'done' END, '{}', '{}', 1,
         now() - interval '100 days', now() - make_interval(days => days) FROM unnest('{91,89,NULL}'::int[]) AS days`,
      [dispatcher.organizationId],
    )
    expect(await apply({})).toMatchObject({ resend_jobs: 0 })
    expect(await apply({ deliveries: 90 })).toMatchObject({ resend_jobs: 1 })
    expect(await apply({ deliveries: 90 })).toMatchObject({ resend_jobs: 0 })
  })

  test('deletes batch after batch, and each entry once if several dispatchers run it', async () => {
    const source = newId()
    const ages = Array.from({ length: 1_100 }, () => 2 * DAY_MS)
    await record(source, [...ages, 0])
    const counts = await Promise.all([deleteOld(1), deleteOld(1), deleteOld(1)])
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1_100)
    expect(await countEntries(source)).toBe(1)
  })
})

/** Creates ended runs of organizations, each in a session of its own, with one step. */
async function createRuns(organizationIds: string[], runsOfEach: number, days: number): Promise<void> {
  const { prisma } = dispatcher.db
  const at = new Date(Date.now() - days * DAY_MS)
  for (const organizationId of organizationIds) {
    const workflow = { id: newId(), name: 'w', description: '', scope: 'company_wide', isActive: true, searchText: 'w' }
    await prisma.workflow.create({ data: { organizationId, ...workflow } })
    const ids = Array.from({ length: runsOfEach }, () => newId())
    const session = { organizationId, createdAt: at, lastUsedAt: at, lastStartNumber: 1, lastFinishedNumber: 1 }
    await prisma.session.createMany({ data: ids.map((id) => ({ id, ...session })) })
    const start = { organizationId, workflowId: workflow.id, number: 1, origin: 'api', context: 'go', requestId: 'r' }
    const ended = { ...start, status: 'succeeded', createdAt: at, finishedAt: at }
    await prisma.start.createMany({ data: ids.map((id) => ({ id, sessionId: id, ...ended })) })
    const step = { position: 0, kind: 'note', data: {}, epoch: 1 }
    await prisma.runStep.createMany({ data: ids.map((runId) => ({ runId, ...step })) })
  }
}

describe('the retention of runs, journals, sessions and audit events', () => {
  test('goes through all organizations, each thing by its own setting', async () => {
    const organizations = [dispatcher.organizationId, await dispatcher.createOrganization()]
    await createRuns(organizations, 3, 10)
    await createRuns(organizations, 2, 20)
    expect(await apply({ journals: 15 })).toMatchObject({ journal_steps: 4, runs: 0, sessions: 0 })
    expect(await apply({ sessions: 1, runs: 30 })).toMatchObject({ runs: 0, sessions: 0 })
    expect(await apply({ runs: 15 })).toMatchObject({ runs: 4, sessions: 0 })
    expect(await apply({ runs: 15, sessions: 15 })).toMatchObject({ runs: 0, sessions: 4 })
    expect(await apply({ runs: 1, sessions: 1, journals: 1 })).toMatchObject({ journal_steps: 6, runs: 6, sessions: 6 })
    expect(await dispatcher.db.prisma.runStep.count()).toBe(0)
  })

  test('deletes cases that were not used, and older evaluations, by the setting of runs', async () => {
    await createRuns([dispatcher.organizationId], 1, 10)
    const { pool } = dispatcher.db
    await pool.query(
      `WITH workflow AS (SELECT id, organization_id FROM workflows WHERE organization_id = $1 LIMIT 1),
       kept AS (
         INSERT INTO cases (id, organization_id, workflow_id, name, context, expected, saved_by_name, used_at)
         SELECT gen_random_uuid(), organization_id, id, 'Case', 'go', '[]', 'Ada', now() - make_interval(days => days)
         FROM workflow, unnest(ARRAY[10, 20]) AS days
       )
       INSERT INTO evaluations (id, organization_id, workflow_id, version_number, started_by_name, created_at)
       SELECT gen_random_uuid(), organization_id, id, 1, 'Ada', now() - make_interval(days => 20) FROM workflow`,
      [dispatcher.organizationId],
    )
    expect(await apply({ runs: 15 })).toMatchObject({ cases: 2 })
    const { rows } = await pool.query(
      'SELECT (SELECT count(*) FROM cases)::int AS cases, count(*)::int AS old FROM evaluations',
    )
    expect(rows).toEqual([{ cases: 1, old: 0 }])
    await apply({ runs: 1, sessions: 1 })
  })

  test('goes on with other organizations and kinds when a statement of one fails', async () => {
    const organizations = [dispatcher.organizationId, await dispatcher.createOrganization()]
    await createRuns(organizations, 2, 10)
    const { pool, prisma } = dispatcher.db
    const mend = await failForOrganization(pool, 'starts', dispatcher.organizationId)
    try {
      await expect(apply({ runs: 5, sessions: 5 })).rejects.toThrow(dispatcher.organizationId)
    } finally {
      await mend()
    }
    expect(await prisma.start.groupBy({ by: ['organizationId'] })).toEqual([
      { organizationId: dispatcher.organizationId },
    ])
    expect(await prisma.session.groupBy({ by: ['organizationId'] })).toEqual([
      { organizationId: dispatcher.organizationId },
    ])
    expect(await apply({ runs: 5, sessions: 5 })).toMatchObject({ runs: 2, sessions: 2 })
  })

  test('is gone on with by another process when one is stopped', async () => {
    await createRuns([dispatcher.organizationId], 2_500, 10)
    const stopping = new AbortController()
    const stopped = apply({ runs: 5, sessions: 5 }, stopping.signal)
    await waitUntil(async () => (await dispatcher.db.prisma.start.count()) < 2_500)
    stopping.abort()
    const first = await stopped
    expect(first.runs).toBeLessThan(2_500)
    const [second, third] = await Promise.all([apply({ runs: 5, sessions: 5 }), apply({ runs: 5, sessions: 5 })])
    expect(first.runs + second.runs + third.runs).toBe(2_500)
    expect(await dispatcher.db.prisma.session.count()).toBe(0)
  })
})

describe('abandoned deliveries', () => {
  test('become unknown half as long again after their deadline, without a call for them', async () => {
    const source = newId()
    await record(source, [61_000, 55_000], 'in_flight')
    await record(source, [61_000], 'accepted')
    await dispatcher.startAnother({ deliveryDeadlineMs: DELIVERY_DEADLINE_MS })
    const outcomes = async (): Promise<string[]> => {
      const entries = await dispatcher.db.prisma.delivery.findMany({ where: { sourceId: source } })
      return entries.map(({ outcome }) => outcome).toSorted()
    }
    await waitUntil(async () => (await outcomes()).includes('unknown'))
    expect(await outcomes()).toEqual(['accepted', 'in_flight', 'unknown'])
  })
})
