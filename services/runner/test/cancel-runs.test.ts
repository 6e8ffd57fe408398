import { beforeEach, describe, expect, test } from '@jest/globals'
import {
  acquireSessions,
  cancelQueuedRuns,
  cancelRun,
  finishRuns,
  operatorOf,
  showSession,
} from '@workflow-service/database'
import { type Answer, waitUntil } from '@workflow-service/testkit'
import { type AcceptedStart, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture('one process')
let acme: TestOrganization
beforeEach(async () => {
  acme = await fixture.createOrganization({ description: 'Post to Order intake, then to Audit log.' })
})

const viewer = () => ({ organizationId: acme.organizationId, memberId: null })
const by = () => operatorOf(acme.organizationId)
const cancel = ({ startId }: AcceptedStart) => cancelRun(fixture.db, viewer(), startId, by())
const payloads = () =>
  acme.endpoint.requests.map(({ path, json }) => `${path} ${(json as { message: string }).message}`)

/** The endpoint answers its next request when the returned function is called. */
function holdNextAnswer(): () => void {
  const held = Promise.withResolvers<Answer>()
  acme.endpoint.answerWith((_, index) => (index === 0 ? held.promise : { status: 204 }))
  return () => held.resolve({ status: 204 })
}

async function startThree(): Promise<[AcceptedStart, AcceptedStart, AcceptedStart]> {
  const one = await fixture.start(acme, { context: 'one' })
  const { sessionId } = one
  return [
    one,
    await fixture.start(acme, { context: 'two', sessionId }),
    await fixture.start(acme, { context: 'three', sessionId }),
  ]
}

/** Starts three runs of a session, and waits until the payload of the first is under way. */
async function startThreeAndHoldFirst() {
  const answer = holdNextAnswer()
  await fixture.startRunner()
  const [one, two, three] = await startThree()
  await acme.endpoint.waitForRequests(1)
  return { answer, one, two, three }
}

describe('a run that is cancelled', () => {
  test('while its payload is under way sends nothing more, and the next start waits for that payload', async () => {
    const { answer, one, two, three } = await startThreeAndHoldFirst()
    // Left by a wait for a paused source, by a runner of an earlier release.
    await fixture.db.pool.query('UPDATE sessions SET paused_source_id = gen_random_uuid()')
    expect(await cancel(one)).toEqual({ kind: 'cancelled', sessionId: one.sessionId })
    const session = await fixture.db.prisma.session.findUniqueOrThrow({ where: { id: one.sessionId } })
    expect(session.pausedSourceId).toBeNull()
    expect(session.waitingSince!.getTime()).toBeGreaterThan(Date.now() + 20_000)
    expect(await fixture.run(two.startId)).toMatchObject({ status: 'queued' })
    answer()
    const [first] = await fixture.waitForRuns([one, two, three])
    expect(payloads()).toEqual(['/orders one', '/orders two', '/audit two', '/orders three', '/audit three'])
    expect(first).toMatchObject({ status: 'cancelled', error: null, deliveries: [{ outcome: 'accepted' }] })
    expect(await cancel(one)).toEqual({ kind: 'ended' })
    const events = await fixture.db.prisma.auditEvent.findMany({ where: { targetId: one.startId } })
    expect(events).toMatchObject([{ action: 'run.cancelled', actorName: 'operator', targetName: 'Forward' }])
  })

  test('while it is queued is never begun, and the session goes on after it', async () => {
    const [one, two, three] = await startThree()
    expect(await cancel(two)).toMatchObject({ kind: 'cancelled' })
    await fixture.startRunner()
    const [, second] = await fixture.waitForRuns([one, two, three])
    expect(second).toMatchObject({ status: 'cancelled', attempts: 0, started_at: null })
    expect(payloads()).toEqual(['/orders one', '/audit one', '/orders three', '/audit three'])
    expect((await showSession(fixture.db, one.sessionId))?.finished).toBe(3)
  })

  test('is not begun either when its session is acquired anew right before it', async () => {
    const [one, two, three] = await startThree()
    await cancel(two)
    const owner = 'a'
    const shares = { slots: 9, maxPerOrganization: 9, leasedByOrganization: new Map<string, number>() }
    const { sessions } = await acquireSessions(fixture.db, { owner, leaseMs: 60_000, ...shares }, [one.sessionId])
    const end = { number: 1, status: 'succeeded', error: null, shouldClaimNext: false } as const
    await finishRuns(fixture.db, owner, [{ lease: sessions[0]!.lease, ...end }])
    await fixture.startRunner()
    const runs = await fixture.waitForRuns([one, two, three])
    expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'cancelled', 'succeeded'])
    expect(payloads()).toEqual(['/orders three', '/audit three'])
  })

  test('while it waits for an approval declines the payload', async () => {
    await fixture.db.prisma.webhookSource.updateMany({ data: { approval: 'always' } })
    await fixture.startRunner()
    const one = await fixture.start(acme, { context: 'one' })
    await fixture.waitForStatus(one, 'waiting')
    expect(await cancel(one)).toMatchObject({ kind: 'cancelled' })
    const { status, approvals } = await fixture.run(one.startId)
    const declined = { status: 'declined', reason: 'The run was cancelled.', decided_by: 'operator' }
    expect({ status, approvals }).toMatchObject({ status: 'cancelled', approvals: [declined, declined] })
    expect(payloads()).toEqual([])
  })

  test('while it waits for a paused source lets its session go on', async () => {
    const setPaused = (pausedAt: Date | null) =>
      fixture.db.prisma.webhookSource.updateMany({ where: { name: 'Order intake' }, data: { pausedAt } })
    await setPaused(new Date())
    await fixture.startRunner()
    const one = await fixture.start(acme, { context: 'one' })
    const isParked = { id: one.sessionId, pausedSourceId: { not: null } }
    await waitUntil(async () => (await fixture.db.prisma.session.count({ where: isParked })) > 0)
    const two = await fixture.start(acme, { context: 'two', sessionId: one.sessionId })
    // No resume wakes the session.
    await setPaused(null)
    expect(await cancel(one)).toMatchObject({ kind: 'cancelled' })
    expect(await fixture.waitForRuns([one, two])).toMatchObject([{ status: 'cancelled' }, { status: 'succeeded' }])
    expect(payloads()).toEqual(['/orders two', '/audit two'])
  })
})

describe('the queued runs', () => {
  test('of a session are cancelled together, and the one under way goes on', async () => {
    const { answer, one, two, three } = await startThreeAndHoldFirst()
    const queue = { kind: 'session', id: one.sessionId } as const
    expect(await cancelQueuedRuns(fixture.db, viewer(), queue, by())).toEqual({ cancelled: 2, isMore: false })
    answer()
    const runs = await fixture.waitForRuns([one, two, three])
    expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'cancelled', 'cancelled'])
    expect(payloads()).toEqual(['/orders one', '/audit one'])
    // The session is free, and takes its next start.
    const four = await fixture.start(acme, { context: 'four', sessionId: one.sessionId })
    expect(await fixture.waitForRuns([four])).toMatchObject([{ status: 'succeeded' }])
  })

  test('of a workflow are cancelled in all sessions, more than one transaction takes', async () => {
    const [one] = await startThree()
    const other = await fixture.start(acme)
    await fixture.db.pool.query(
      `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
       SELECT gen_random_uuid(), organization_id, workflow_id, session_id, next, origin, context, request_id
       FROM starts, generate_series(4, 700) AS next WHERE id = $1`,
      [one.startId],
    )
    await fixture.db.pool.query('UPDATE sessions SET last_start_number = 700 WHERE id = $1', [one.sessionId])
    const queue = { kind: 'workflow', id: acme.workflowId } as const
    expect(await cancelQueuedRuns(fixture.db, viewer(), queue, by())).toEqual({ cancelled: 701, isMore: false })
    expect(await showSession(fixture.db, one.sessionId)).toMatchObject({ starts: 700, finished: 700 })
    expect(await showSession(fixture.db, other.sessionId)).toMatchObject({ starts: 1, finished: 1 })
    expect(
      await fixture.db.prisma.auditEvent.count({ where: { targetId: acme.workflowId, action: 'queue.cancelled' } }),
    ).toBe(2)
  })
})
