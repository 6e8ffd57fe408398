import { beforeEach, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  acquireWaitingSessions,
  claimDeliveries,
  endWorkAfterRestore,
  leaseResendJob,
  newId,
  showRun,
} from '../src/index.ts'
import { ACQUIRE_ALL, createSource, createStartable, listWrongEnds, newClaim, start } from './support/start-fixtures.ts'

const database = useTestDatabase()
beforeEach(async () => {
  await database.db.pool.query(
    'DELETE FROM deliveries; DELETE FROM sessions; DELETE FROM starts; DELETE FROM organizations',
  )
})

test('ends what was under way at the restored moment, so that no runner does it again, and later starts run', async () => {
  const { db } = database
  const acme = await createStartable(db)
  const running = await start(db, acme)
  const queued = await start(db, acme, running.sessionId)
  const { sessions } = await acquireWaitingSessions(db, ACQUIRE_ALL)
  const lease = sessions[0]!.lease
  const untouched = await start(db, acme)
  const sourceId = await createSource(db, acme)
  const delivery = newClaim(acme.organizationId, sourceId, { runId: running.startId, lease })
  expect(await claimDeliveries(db, [delivery])).toMatchObject([{ kind: 'claimed' }])
  await db.pool.query(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
     VALUES ($1, $2, $3, $4, 'Orders', '{}', now() + interval '1 day')`,
    [newId(), acme.organizationId, queued.startId, sourceId],
  )

  await db.pool.query(
    `INSERT INTO resend_jobs (id, organization_id, delivery_ids, resend_ids, per_second, created_by_name)
     VALUES ($1, $2, $3, $4, 1, 'Ada')`,
    [newId(), acme.organizationId, [delivery.id], [newId()]],
  )

  expect(await endWorkAfterRestore(db)).toEqual({ runs: 3, deliveries: 1, schedules: 0, resendJobs: 1 })

  for (const { startId } of [running, queued, untouched]) {
    expect(await showRun(db, startId)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^interrupted_by_restore: /),
    })
  }
  expect(await listWrongEnds(db)).toEqual([])
  const { rows } = await db.pool.query(
    `SELECT (SELECT outcome FROM deliveries) AS delivery, (SELECT status FROM approvals) AS approval`,
  )
  expect(rows).toEqual([{ delivery: 'unknown', approval: 'expired' }])
  expect(await acquireWaitingSessions(db, ACQUIRE_ALL)).toMatchObject({ sessions: [] })
  expect(await claimDeliveries(db, [{ ...delivery, id: newId() }])).toEqual([{ kind: 'lease_lost' }])
  expect(await leaseResendJob(db, 'app')).toBeUndefined()
  expect(await endWorkAfterRestore(db)).toEqual({ runs: 0, deliveries: 0, schedules: 0, resendJobs: 0 })

  const later = await start(db, acme, running.sessionId)
  expect(await acquireWaitingSessions(db, ACQUIRE_ALL)).toMatchObject({ sessions: [{ run: { id: later.startId } }] })
})

test('a schedule that was due since the restored moment waits for its next time, and one in the future stays', async () => {
  const { db } = database
  const schedule = {
    autoRunEnabled: true,
    autoRunFrequency: 'daily',
    autoRunAnchorAt: new Date('2026-03-01T09:20:00Z'),
  }
  const due = await createStartable(db, { autoRun: { ...schedule, autoRunNextAt: new Date('2026-03-02T09:20:00Z') } })
  const future = await createStartable(db, {
    autoRun: { ...schedule, autoRunNextAt: new Date('2126-03-02T09:20:00Z') },
  })
  const nextOf = async (id: string) => (await db.prisma.workflow.findUniqueOrThrow({ where: { id } })).autoRunNextAt

  expect(await endWorkAfterRestore(db)).toMatchObject({ schedules: 1 })

  const next = (await nextOf(due.workflowId))!
  expect(next.toISOString()).toMatch(/T09:20:00\.000Z$/)
  expect(next.getTime() - Date.now()).toBeGreaterThan(0)
  expect(next.getTime() - Date.now()).toBeLessThanOrEqual(86_400_000)
  expect(await nextOf(future.workflowId)).toEqual(new Date('2126-03-02T09:20:00Z'))
})
