import { describe, expect, test } from '@jest/globals'
import { untilLocked } from '@workflow-service/testkit'
import {
  acquireSessions,
  claimDeliveries,
  type Database,
  type DeliveryClaimRequest,
  type DeliveryJournal,
  findDeliveryState,
  newId,
  readSteps,
  recordRunOutcomes,
  releaseSessions,
  removeUnsentDelivery,
  serializeStep,
} from '../src/index.ts'
import { ACCEPTED, ACQUIRE_ALL, newClaim, start, useStartable } from './support/start-fixtures.ts'

const acme = useStartable()

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
const kinds = async (runId: string) => (await readSteps(acme.db, runId)).map(({ kind }) => kind)
const record = async ({ request, journal }: Awaited<ReturnType<typeof leaseRun>>, result = ACCEPTED) => {
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
    expect(await kinds(runId)).toEqual(['message', 'tool_call'])
    expect(await kindOf(request)).toBe('known')
    expect(await kinds(runId)).toEqual(['message', 'tool_call'])
  })

  test('writes nothing under a lease that another runner has taken, or that was released', async () => {
    const taken = await leaseRun()
    await acquire('b', taken.sessionId)
    const released = await leaseRun()
    await releaseSessions(acme.db, 'a', [released.journal.lease])
    for (const { request, runId } of [taken, released]) {
      expect(await kindOf(request)).toBe('lease_lost')
      expect(await kinds(runId)).toEqual([])
      expect(await findDeliveryState(acme.db, request.id)).toBeUndefined()
    }
  })

  test('waits for another runner that is taking the lease, and then writes nothing', async () => {
    const { request, runId, sessionId } = await leaseRun()
    const client = await acme.db.pool.connect()
    try {
      await client.query('BEGIN')
      await acquire('b', sessionId, { pool: client } as unknown as Database)
      const claiming = kindOf(request)
      await untilLocked(acme.db.pool)
      await client.query('COMMIT')
      expect(await claiming).toBe('lease_lost')
    } finally {
      client.release()
    }
    expect(await kinds(runId)).toEqual([])
  })

  test('writes no step when the payload is not claimed', async () => {
    const { request, runId } = await leaseRun()
    expect(await kindOf({ ...request, sourceId: newId() })).toBe('no_source')
    expect(await kinds(runId)).toEqual([])
  })

  test('keeps its steps when it is removed because nothing was sent, and made again', async () => {
    const { request, runId } = await leaseRun()
    await kindOf(request)
    const { delivery } = (await findDeliveryState(acme.db, request.id))!
    expect(await removeUnsentDelivery(acme.db, delivery)).toBe(true)
    expect(await kindOf(request)).toBe('claimed')
    expect(await kinds(runId)).toEqual(['message', 'tool_call'])
  })
})

describe('the outcome of a payload', () => {
  test('writes its result, and ends the run of which it was the last', async () => {
    const run = await leaseRun()
    await kindOf(run.request)
    expect(await record(run)).toEqual({ finishedAt: expect.any(Date), isWritten: true, isEnded: true })
    expect(await kinds(run.runId)).toEqual(['message', 'tool_call', 'tool_result'])
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
    expect(await kinds(run.runId)).toHaveLength(3)
    expect([await statusOf(run.runId), await ownerOf(run.sessionId)]).toEqual(['running', 'a'])
  })

  test('is recorded after the lease was lost, but the journal and the run belong to the next runner', async () => {
    const run = await leaseRun()
    await kindOf(run.request)
    await acquire('b', run.sessionId)
    expect(await record(run)).toMatchObject({ isWritten: false, isEnded: false })
    expect((await findDeliveryState(acme.db, run.request.id))?.delivery.outcome).toBe('accepted')
    expect(await kinds(run.runId)).toHaveLength(2)
    expect([await statusOf(run.runId), await ownerOf(run.sessionId)]).toEqual(['running', 'b'])
  })

  test('is recorded once', async () => {
    const run = await leaseRun()
    await kindOf(run.request)
    await record(run)
    expect(await record(run, { ...ACCEPTED, outcome: 'rejected' })).toBeUndefined()
    expect(await kinds(run.runId)).toHaveLength(3)
  })
})
