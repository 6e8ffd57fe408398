import type { AutoRunFrequency } from '@workflow-service/contract'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { nextAutoRunAt } from '../src/workflows/auto-run-schedule.ts'
import { type Database, listRuns, showRun, startDueAutoRuns, acquireWaitingSessions } from '../src/index.ts'
import { ACQUIRE_ALL, createStartable, type Startable } from './support/start-fixtures.ts'

const database = useTestDatabase({ maxConnections: 12 })
let db: Database
beforeEach(async () => {
  ;({ db } = database)
  await db.pool.query('DELETE FROM deliveries; DELETE FROM sessions; DELETE FROM starts; DELETE FROM organizations')
})

function scheduled(frequency: AutoRunFrequency, anchor: string): Promise<Startable> {
  const anchorAt = new Date(anchor)
  return createStartable(db, {
    autoRun: {
      autoRunEnabled: true,
      autoRunFrequency: frequency,
      autoRunAnchorAt: anchorAt,
      autoRunNextAt: nextAutoRunAt({ frequency, anchorAt }, anchorAt),
    },
  })
}

const startDue = async (now: string) =>
  (await startDueAutoRuns(db, { now: new Date(now), limit: 100, newRequestId: () => 'request-auto' })).started

const nextOf = async ({ workflowId }: Startable) =>
  (await db.prisma.workflow.findUniqueOrThrow({ where: { id: workflowId } })).autoRunNextAt?.toISOString()

const idsOf = (found: { workflowId: string }[]) => found.map(({ workflowId }) => workflowId).toSorted()

describe('startDueAutoRuns', () => {
  test('follows the clock of a time zone over a change of clocks', async () => {
    const acme = await scheduled('daily', '2026-03-28T07:30:00Z')
    const timing = JSON.stringify({ time: '08:30', day: null, time_zone: 'Europe/Berlin' })
    await db.pool.query(
      `UPDATE workflows SET auto_run_timing = $2, auto_run_next_at = '2026-03-28T07:30:00Z' WHERE id = $1`,
      [acme.workflowId, timing],
    )
    expect(await startDue('2026-03-28T07:30:00Z')).toHaveLength(1)
    expect(await nextOf(acme)).toBe('2026-03-29T06:30:00.000Z')
  })

  test('starts a due workflow in a new session that a runner can acquire, and advances the schedule', async () => {
    const acme = await scheduled('daily', '2026-03-01T09:20:00Z')
    expect(await startDue('2026-03-02T09:19:59.999Z')).toEqual([])
    const [started] = await startDue('2026-03-02T09:20:00Z')
    expect(started).toMatchObject({ workflowId: acme.workflowId, dueAt: new Date('2026-03-02T09:20:00Z') })
    expect(await nextOf(acme)).toBe('2026-03-03T09:20:00.000Z')
    expect(await showRun(db, started!.startId)).toMatchObject({
      origin: 'auto_run',
      session_id: started!.sessionId,
      number: 1,
      input_message: '',
      request_id: 'request-auto',
      context: '{"frequency":"daily","scheduled_for":"2026-03-02T09:20:00.000Z"}',
    })
    const { sessions: acquired } = await acquireWaitingSessions(db, ACQUIRE_ALL)
    expect(acquired).toMatchObject([{ run: { id: started!.startId } }])
  })

  test('starts each due time once when many runners call it concurrently', async () => {
    const workflows = await Promise.all(Array.from({ length: 5 }, () => scheduled('hourly', '2026-03-01T09:20:00Z')))
    const started = await Promise.all(Array.from({ length: 10 }, () => startDue('2026-03-01T10:20:00Z')))
    expect(idsOf(started.flat())).toEqual(idsOf(workflows))
    for (const { organizationId } of workflows)
      expect(await listRuns(db, organizationId, { limit: 10 })).toHaveLength(1)
  })

  test('after a long downtime, a run is started once for all missed times', async () => {
    const acme = await scheduled('monthly', '2026-01-31T02:30:00Z')
    expect(await startDue('2026-05-29T12:34:00Z')).toHaveLength(1)
    expect(await startDue('2026-05-29T12:34:00Z')).toEqual([])
    expect(await nextOf(acme)).toBe('2026-05-31T02:30:00.000Z')
  })

  test.each(['an inactive workflow', 'a suspended organization'])(
    'the schedule of %s advances without a run',
    async (what) => {
      const acme = await scheduled('daily', '2026-03-01T09:20:00Z')
      await (what === 'an inactive workflow'
        ? db.prisma.workflow.update({ where: { id: acme.workflowId }, data: { isActive: false } })
        : db.prisma.organization.update({ where: { id: acme.organizationId }, data: { isSuspended: true } }))
      expect(await startDue('2026-03-02T09:20:00Z')).toEqual([])
      expect(await listRuns(db, acme.organizationId, { limit: 10 })).toEqual([])
      expect(await nextOf(acme)).toBe('2026-03-03T09:20:00.000Z')
    },
  )

  test('says that others may be due where it has started none', async () => {
    const { workflowId: inactive } = await scheduled('daily', '2026-03-01T09:20:00Z')
    const { workflowId } = await scheduled('daily', '2026-03-01T09:21:00Z')
    await db.prisma.workflow.update({ where: { id: inactive }, data: { isActive: false } })
    const batch = { now: new Date('2026-03-02T09:30:00Z'), limit: 1, newRequestId: () => 'request-auto' }
    const first = await startDueAutoRuns(db, batch)
    expect(first).toMatchObject({ started: [], next: { workflowId: inactive } })
    const second = await startDueAutoRuns(db, { ...batch, after: first.next })
    expect(second).toMatchObject({ started: [{ workflowId }], next: { workflowId } })
    expect(await startDueAutoRuns(db, { ...batch, after: second.next })).toEqual({ started: [], next: undefined })
  })

  test('starts the others where one has a time zone that only a newer process knows', async () => {
    const { workflowId: first } = await scheduled('daily', '2026-03-01T09:20:00Z')
    const { workflowId } = await scheduled('daily', '2026-03-01T09:21:00Z')
    const timing = JSON.stringify({ time: '09:20', day: null, time_zone: 'Europe/Atlantis' })
    await db.pool.query('UPDATE workflows SET auto_run_timing = $2 WHERE id = $1', [first, timing])
    const failed: unknown[] = []
    const batch = { now: new Date('2026-03-02T09:30:00Z'), limit: 1, newRequestId: () => 'request-auto' }
    const onFailed = (...of: unknown[]) => failed.push(of)
    const { started, next } = await startDueAutoRuns(db, { ...batch, onFailed })
    expect(started).toEqual([])
    expect(failed).toEqual([[expect.objectContaining({ workflowId: first }), expect.any(Error)]])
    expect(await startDueAutoRuns(db, { ...batch, after: next })).toMatchObject({ started: [{ workflowId }] })
  })

  test('starts the others at once while the row of one is locked, and that one later', async () => {
    const { workflowId: locked } = await scheduled('daily', '2026-03-01T09:20:00Z')
    const { workflowId } = await scheduled('daily', '2026-03-01T09:21:00Z')
    const client = await db.pool.connect()
    try {
      await client.query('BEGIN')
      await client.query('SELECT FROM workflows WHERE id = $1 FOR NO KEY UPDATE', [locked])
      expect(idsOf([...(await startDue('2026-03-02T09:30:00Z'))])).toEqual([workflowId])
    } finally {
      await client.query('ROLLBACK').finally(() => client.release())
    }
    expect(idsOf([...(await startDue('2026-03-02T09:30:05Z'))])).toEqual([locked])
  })

  test('starts nothing again when the clock jumps back', async () => {
    await scheduled('hourly', '2026-03-01T09:20:00Z')
    expect(await startDue('2026-03-01T10:20:00Z')).toHaveLength(1)
    expect(await startDue('2026-03-01T10:05:00Z')).toEqual([])
    expect(await startDue('2026-03-01T10:25:00Z')).toEqual([])
  })

  test('uses the clock of the database by default', async () => {
    await scheduled('hourly', '2020-01-01T00:00:00Z')
    const due = await startDueAutoRuns(db, { limit: 10, newRequestId: () => 'request-auto' })
    expect([due.started.length, due.next]).toEqual([1, undefined])
  })
})
