import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, jest, test } from '@jest/globals'
import { beginTransaction, countLocked, untilLocked, waitUntil } from '@workflow-service/testkit'
import type { QueryConfig, QueryResult } from 'pg'
import {
  acquireSessions,
  cancelRun,
  claimDeliveries,
  countWaitingApprovals,
  createResendJob,
  type Database,
  deleteOldDeliveries,
  type DeliveryClaimRequest,
  type DeliveryJournal,
  type DeliveryResult,
  findDeliveryState,
  listDeliveries,
  listWaitingApprovals,
  MAX_RESENDS,
  newId,
  operatorOf,
  previewResends,
  readSteps,
  recordOutcomes,
  recordRunOutcomes,
  releaseSessions,
  removeUnsentDelivery,
  serializeStep,
} from '../src/index.ts'
import { explaining } from './support/count-reads.ts'
import { ACCEPTED, ACQUIRE_ALL, newClaim, start, useStartable } from './support/start-fixtures.ts'

const acme = useStartable()

const newRequest = (changes: Partial<DeliveryClaimRequest> = {}): DeliveryClaimRequest =>
  newClaim(acme.organizationId, acme.sourceId, changes)
const outcomeOf = async (id: string) => (await findDeliveryState(acme.db, id))?.delivery.outcome

test('removeUnsentDelivery removes the claim that it names, and no later claim of the same id', async () => {
  const claim = newRequest()
  await claimDeliveries(acme.db, [claim])
  const first = (await findDeliveryState(acme.db, claim.id))!.delivery
  expect(await removeUnsentDelivery(acme.db, { ...first, organization_id: newId() })).toBe(false)
  expect(await removeUnsentDelivery(acme.db, first)).toBe(true)
  // The time of the record is in milliseconds.
  await sleep(5)
  await claimDeliveries(acme.db, [claim])
  expect(await removeUnsentDelivery(acme.db, first)).toBe(false)
  expect(await outcomeOf(claim.id)).toBe('in_flight')
})

test('what a resend repeats needs no attention any more, also when that was not written with its outcome', async () => {
  const failed = newRequest()
  const resend = { of: failed.id, firstId: failed.id, sentBy: null, sessionId: null }
  const sentAgain = newRequest({ resend })
  const { organizationId } = acme
  await claimDeliveries(acme.db, [failed, sentAgain])
  await recordOutcomes(acme.db, [{ organizationId, id: failed.id, result: { ...ACCEPTED, outcome: 'unreachable' } }])
  const query = async (statement: QueryConfig): Promise<QueryResult> => {
    if (statement.name === 'handle-resent') throw new Error('Connection terminated')
    return await acme.db.pool.query(statement)
  }
  const breaking = { pool: { query } } as unknown as Database
  const accepted = [{ organizationId, id: sentAgain.id, result: ACCEPTED }]
  await expect(recordOutcomes(breaking, accepted)).rejects.toThrow('Connection terminated')
  expect(await outcomeOf(sentAgain.id)).toBe('accepted')
  expect(await recordOutcomes(acme.db, accepted)).toEqual([undefined])
  const { rows } = await acme.db.pool.query('SELECT handled_at FROM deliveries WHERE id = $1', [failed.id])
  expect(rows).toEqual([{ handled_at: expect.any(Date) }])
})

test('a payload that waits for approval is listed, however many of runs that have failed are older', async () => {
  const [failed, waiting] = [await start(acme.db, acme), await start(acme.db, acme)]
  const { pool } = acme.db
  await pool.query(`UPDATE starts SET status = 'failed', error = 'e: e', finished_at = now() WHERE id = $1`, [
    failed.startId,
  ])
  const ask = ({ startId }: { startId: string }, count: number) =>
    pool.query(
      `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
       SELECT gen_random_uuid(), $1, $2, $3, 'Order intake', '{}', now() + interval '1 day' FROM generate_series(1, $4::int)`,
      [acme.organizationId, startId, acme.sourceId, count],
    )
  await ask(failed, 1_001)
  await ask(waiting, 1)
  const viewer = { organizationId: acme.organizationId, memberId: null }
  expect(await listWaitingApprovals(acme.db, viewer)).toMatchObject([{ run_id: waiting.startId }])
  expect(await countWaitingApprovals(acme.db, viewer)).toBe(1)
})

test('deleteOldDeliveries keeps the deliveries of a run until it has ended, because it may be resumed', async () => {
  const { startId: runId } = await start(acme.db, acme)
  const claim = newRequest({ runId })
  await claimDeliveries(acme.db, [claim])
  await recordOutcomes(acme.db, [{ organizationId: acme.organizationId, id: claim.id, result: ACCEPTED }])
  const createdAt = new Date(Date.now() - 3 * 86_400_000)
  await acme.db.prisma.delivery.update({ where: { id: claim.id }, data: { createdAt } })
  const deleteOld = (): Promise<number> => deleteOldDeliveries(acme.db, { olderThanDays: 1, batchSize: 100 })
  const endAs = (status: string, finishedAt: Date | null): Promise<unknown> =>
    acme.db.prisma.start.update({ where: { id: runId }, data: { status, finishedAt } })
  expect(await deleteOld()).toBe(0)
  await endAs('running', null)
  expect(await deleteOld()).toBe(0)
  await endAs('succeeded', new Date())
  expect(await deleteOld()).toBe(1)
  expect(await outcomeOf(claim.id)).toBeUndefined()
})

test('each id is claimed once when concurrent batches contain the same ids in different orders', async () => {
  const requests = Array.from({ length: 20 }, () => newRequest())
  const batches = await Promise.all(
    [requests, requests.toReversed(), requests].map((batch) => claimDeliveries(acme.db, batch)),
  )
  const kinds = batches.flat().map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'claimed')).toHaveLength(20)
  expect(kinds.filter((kind) => kind === 'known')).toHaveLength(40)
})

test('each outcome is recorded once, with its delivery, and replaces `unknown`', async () => {
  const [first, second] = [newRequest(), newRequest()]
  await claimDeliveries(acme.db, [first, second])
  const record = (...records: [id: string, outcome: DeliveryResult['outcome'], organizationId?: string][]) =>
    recordOutcomes(
      acme.db,
      records.map(([id, outcome, organizationId = acme.organizationId]) => {
        return { id, organizationId, result: { ...ACCEPTED, outcome } }
      }),
    )
  const time = expect.any(Date)
  expect(await record([first.id, 'accepted', newId()])).toEqual([undefined])
  const recorded = await record([second.id, 'rejected'], [first.id, 'unknown'], [newId(), 'accepted'])
  expect(recorded).toEqual([time, time, undefined])
  expect(await record([first.id, 'unknown'])).toEqual([undefined])
  expect(await record([first.id, 'accepted'])).toEqual([time])
  expect(await record([first.id, 'timed_out'])).toEqual([undefined])
  expect([await outcomeOf(first.id), await outcomeOf(second.id)]).toEqual(['accepted', 'rejected'])
})

test('what is sent again is found without comparing each payload with each', async () => {
  const { organizationId, sourceId } = acme
  await acme.db.pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id)
     SELECT gen_random_uuid(), $1, $2, 'payload', 'refused', '{}', 'r' FROM generate_series(1, 500)`,
    [organizationId, sourceId],
  )
  const { on, mostCompared } = explaining(acme.db)
  const preview = await previewResends(on, { organizationId, memberId: null }, { outcome: 'refused' })
  expect(preview).toMatchObject({ total: 500, sources: [{ id: sourceId, count: 500 }] })
  expect(mostCompared()).toBeLessThanOrEqual(500)
})

test('what is left is sent again after a first job, however many payloads that one sent', async () => {
  const { organizationId, sourceId } = acme
  await acme.db.pool.query(
    `WITH first AS (
       INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id, created_at)
       SELECT gen_random_uuid(), $1, $2, 'payload', 'timed_out', '{}', 'r', now() - n * interval '1 second'
       FROM generate_series(1, ${MAX_RESENDS + 3}) AS n RETURNING *
     )
     INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id, resend_of)
     SELECT gen_random_uuid(), $1, $2, 'payload', 'accepted', '{}', 'r', id
     FROM (SELECT id FROM first ORDER BY created_at DESC LIMIT ${MAX_RESENDS}) AS sent`,
    [organizationId, sourceId],
  )
  const preview = await previewResends(acme.db, { organizationId, memberId: null }, { outcome: 'timed_out' })
  expect(preview).toMatchObject({ total: 3, is_more: false })
})

test('no payload is in two jobs at once, also of those that are created at the same time', async () => {
  const { organizationId, sourceId } = acme
  const viewer = { organizationId, memberId: null }
  await acme.db.pool.query(
    `WITH first AS (
       INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id)
       SELECT gen_random_uuid(), $1, $2, 'payload', 'unreachable', '{}', 'r' FROM generate_series(1, 3) RETURNING id
     )
     INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id, resend_of)
     SELECT gen_random_uuid(), $1, $2, 'payload', 'invalid', '{}', 'r', id FROM first`,
    [organizationId, sourceId],
  )
  // The same payloads: one by their first deliveries, the other by what they were sent again as.
  const create = (outcome: 'unreachable' | 'invalid') =>
    createResendJob(acme.db, viewer, {
      id: newId(),
      filter: { outcome, sourceId },
      perSecond: 1,
      by: operatorOf(organizationId),
    })
  const { pool } = acme.db
  using holder = await beginTransaction(pool)
  await holder.query('LOCK TABLE resend_jobs IN EXCLUSIVE MODE')
  const creating = Promise.all([create('unreachable'), create('invalid')])
  await waitUntil(async () => (await countLocked(pool)) === 2)
  await holder.query('COMMIT')
  expect((await creating).filter(Boolean)).toHaveLength(1)
  const total = async () => (await previewResends(acme.db, viewer, { outcome: 'unreachable', sourceId })).total
  expect(await total()).toBe(0)
  await pool.query('UPDATE resend_jobs SET done = 1')
  expect(await total()).toBe(1)
  await pool.query(`UPDATE resend_jobs SET status = 'stopped', finished_at = now()`)
  expect(await total()).toBe(3)
})

test('a log of which nothing is to be sent again is not read without a bound', async () => {
  const page = Array.from({ length: 501 }, () => ({ id: newId(), createdAt: new Date(), isVisible: true }))
  const query = jest.fn((text: string) =>
    Promise.resolve({
      rows: text.endsWith(' AS now') ? [{ now: new Date() }] : text.includes('RECURSIVE') ? [] : page,
    }),
  )
  const viewer = { organizationId: acme.organizationId, memberId: null }
  const preview = await previewResends({ pool: { query } } as never, viewer, { outcome: 'rejected' })
  expect(preview).toMatchObject({ total: 0, is_more: true })
  expect(query).toHaveBeenCalledTimes(201)
})

test('a page of a log is read by one prepared statement, so that each entry is what its filters say', async () => {
  await claimDeliveries(acme.db, [newRequest()])
  const query = jest.spyOn(acme.db.pool, 'query')
  const page = { sourceId: acme.sourceId, outcome: 'in_flight', limit: 1 } as const
  const { rows } = await listDeliveries(acme.db, acme.organizationId, page)
  expect(query.mock.calls).toEqual([[expect.objectContaining({ name: 'list-deliveries-in_flight' })]])
  expect(rows).toEqual([expect.objectContaining({ outcome: 'in_flight', rejected_answer: null })])
})

const PLAN = [
  serializeStep({ kind: 'message', data: { agent: 'builtin', text: 'hello' } }),
  serializeStep({ kind: 'tool_call', data: { call_id: 'one', tool: 'builtin' } }),
]
const RESULT = serializeStep({
  kind: 'tool_result',
  data: { call_id: 'one', tool: 'builtin', ok: true, text: '' },
}).data

/** A run that runner `a` executes, and the claim of its only payload. */
async function leaseRun() {
  const { organizationId, sourceId } = acme
  const { sessionId, startId: runId } = await start(acme.db, acme)
  const lease = await acquire('a', sessionId)
  const journal: DeliveryJournal = { runId, lease, position: 0, steps: PLAN, lastOfRun: 1 }
  return { sessionId, runId, journal, request: newClaim(organizationId, sourceId, { runId, lease, journal }) }
}

async function acquire(owner: string, sessionId: string, on: Pick<Database, 'pool'> = acme.db) {
  await on.pool.query(
    `UPDATE sessions SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1 AND lease_owner IS NOT NULL`,
    [sessionId],
  )
  const { sessions } = await acquireSessions(on, { ...ACQUIRE_ALL, owner }, [sessionId])
  return sessions[0]!.lease
}

const kindOf = async (request: DeliveryClaimRequest) => (await claimDeliveries(acme.db, [request]))[0]!.kind
const kindsOf = async (runId: string) => (await readSteps(acme.db, runId)).map(({ kind }) => kind)
type LeasedRun = Awaited<ReturnType<typeof leaseRun>>
const record = async ({ request, journal }: LeasedRun, result = ACCEPTED) => {
  const { id, organizationId } = request
  return (
    await recordRunOutcomes(acme.db, [{ id, organizationId, result, journal: { ...journal, result: RESULT } }])
  )[0]
}
const statusOf = async (runId: string) =>
  (await acme.db.prisma.start.findUniqueOrThrow({ where: { id: runId }, select: { status: true, finishedAt: true } }))
    .status
const ownerOf = async (id: string) => (await acme.db.prisma.session.findUniqueOrThrow({ where: { id } })).leaseOwner

describe('the claim of a payload', () => {
  test('writes the planned steps with it', async () => {
    const { request, runId } = await leaseRun()
    expect(await kindOf(request)).toBe('claimed')
    expect(await kindsOf(runId)).toEqual(['message', 'tool_call'])
    expect(await kindOf(request)).toBe('known')
    expect(await kindsOf(runId)).toEqual(['message', 'tool_call'])
  })

  test('writes nothing under a lease that another runner has taken, or that was released', async () => {
    const taken = await leaseRun()
    await acquire('b', taken.sessionId)
    const released = await leaseRun()
    await releaseSessions(acme.db, 'a', [released.journal.lease])
    for (const { request, runId } of [taken, released]) {
      expect(await kindOf(request)).toBe('lease_lost')
      expect(await kindsOf(runId)).toEqual([])
      expect(await findDeliveryState(acme.db, request.id)).toBeUndefined()
    }
  })

  test('waits for another runner that is taking the lease, and then writes nothing', async () => {
    const { request, runId, sessionId } = await leaseRun()
    using client = await beginTransaction(acme.db.pool)
    await acquire('b', sessionId, { pool: client } as unknown as Database)
    const claiming = kindOf(request)
    await untilLocked(acme.db.pool)
    await client.query('COMMIT')
    expect(await claiming).toBe('lease_lost')
    expect(await kindsOf(runId)).toEqual([])
  })

  test('writes no step when the payload is not claimed', async () => {
    const { request, runId } = await leaseRun()
    expect(await kindOf({ ...request, sourceId: newId() })).toBe('no_source')
    expect(await kindsOf(runId)).toEqual([])
  })

  test('keeps its steps when it is removed because nothing was sent, and made again', async () => {
    const { request, runId } = await leaseRun()
    await kindOf(request)
    const { delivery } = (await findDeliveryState(acme.db, request.id))!
    expect(await removeUnsentDelivery(acme.db, delivery)).toBe(true)
    expect(await kindOf(request)).toBe('claimed')
    expect(await kindsOf(runId)).toEqual(['message', 'tool_call'])
  })

  test('lets the session of a cancelled run go on when it is removed because nothing was sent, and not before', async () => {
    const { request, runId, sessionId } = await leaseRun()
    const next = await start(acme.db, acme, sessionId)
    await kindOf(request)
    const { organizationId, db } = acme
    const viewer = { organizationId, memberId: null }
    expect(await cancelRun(db, viewer, runId, operatorOf(organizationId))).toMatchObject({ kind: 'cancelled' })
    const acquired = async () =>
      (await acquireSessions(db, ACQUIRE_ALL, [sessionId])).sessions.map(({ run }) => run?.id)
    const resend = { of: request.id, firstId: request.id, sentBy: null, sessionId }
    const sentAgain = newRequest({ runId, resend })
    expect(await kindOf(sentAgain)).toBe('claimed')
    const remove = async (id: string) => removeUnsentDelivery(db, (await findDeliveryState(db, id))!.delivery)
    expect(await remove(sentAgain.id)).toBe(true)
    expect(await acquired()).toEqual([])
    expect(await remove(request.id)).toBe(true)
    expect(await acquired()).toEqual([next.startId])
  })

  test('that is removed because nothing was sent waits for a cancellation of its run, whose session then goes on', async () => {
    const { request, runId, sessionId } = await leaseRun()
    const next = await start(acme.db, acme, sessionId)
    await kindOf(request)
    const { organizationId, db } = acme
    const { delivery } = (await findDeliveryState(db, request.id))!
    using holder = await beginTransaction(db.pool)
    await holder.query('LOCK TABLE audit_events IN EXCLUSIVE MODE')
    const cancelling = cancelRun(db, { organizationId, memberId: null }, runId, operatorOf(organizationId))
    await untilLocked(db.pool, 'audit_events')
    const removal = removeUnsentDelivery(db, delivery)
    await Promise.race([removal, untilLocked(db.pool, 'isLeased')])
    await holder.query('COMMIT')
    expect(await cancelling).toMatchObject({ kind: 'cancelled' })
    expect(await removal).toBe(true)
    const { sessions } = await acquireSessions(db, ACQUIRE_ALL, [sessionId])
    expect(sessions.map(({ run }) => run?.id)).toEqual([next.startId])
  })
})

describe('the outcome of a payload', () => {
  test('is recorded once, writes its result, and ends the run of which it was the last', async () => {
    const run = await leaseRun()
    await kindOf(run.request)
    expect(await record(run)).toEqual({ finishedAt: expect.any(Date), isWritten: true, isEnded: true })
    expect(await record(run, { ...ACCEPTED, outcome: 'rejected' })).toBeUndefined()
    expect(await kindsOf(run.runId)).toEqual(['message', 'tool_call', 'tool_result'])
    expect([await statusOf(run.runId), await ownerOf(run.sessionId)]).toEqual(['succeeded', null])
    const next = await start(acme.db, acme, run.sessionId)
    const lease = await acquire('b', run.sessionId)
    expect(lease.epoch).toBeGreaterThan(run.journal.lease.epoch)
    expect(await statusOf(next.startId)).toBe('running')
  })

  test.each([
    ['the payload was rejected', { ...ACCEPTED, outcome: 'rejected' as const, status: 500 }, 1, 0],
    ['the run has more to do', ACCEPTED, null, 0],
    ['the session has another start, which the runner claims', ACCEPTED, 1, 1],
  ])('writes its result and leaves the run to the runner when %s', async (_when, result, lastOfRun, starts) => {
    const run = await leaseRun()
    for (let index = 0; index < starts; index += 1) await start(acme.db, acme, run.sessionId)
    await kindOf(run.request)
    const journal = { ...run.journal, lastOfRun }
    expect(await record({ ...run, journal }, result)).toMatchObject({ isWritten: true, isEnded: false })
    expect(await kindsOf(run.runId)).toHaveLength(3)
    expect([await statusOf(run.runId), await ownerOf(run.sessionId)]).toEqual(['running', 'a'])
  })

  test.each([
    ['taken by another runner', 'running', 'b', ({ sessionId }: LeasedRun) => acquire('b', sessionId)],
    ['released', 'queued', null, ({ journal }: LeasedRun) => releaseSessions(acme.db, 'a', [journal.lease])],
  ])('is recorded after the lease was %s, but not in the journal', async (_how, status, owner, endLease) => {
    const run = await leaseRun()
    await kindOf(run.request)
    await endLease(run)
    expect(await record(run)).toMatchObject({ isWritten: false, isEnded: false })
    expect((await findDeliveryState(acme.db, run.request.id))?.delivery.outcome).toBe('accepted')
    expect(await kindsOf(run.runId)).toHaveLength(2)
    expect([await statusOf(run.runId), await ownerOf(run.sessionId)]).toEqual([status, owner])
  })
})
