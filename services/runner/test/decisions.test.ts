import { beforeEach, describe, expect, test } from '@jest/globals'
import { whyParked } from '@workflow-service/contract'
import {
  acquireSessions,
  cancelQueuedRuns,
  cancelRun,
  decideApprovals,
  finishRuns,
  inTransaction,
  isDeliveryIdOfRun,
  listWebhookSources,
  operatorOf,
  type RunDetails,
  setSourcePaused,
  showSession,
  wakePausedSessions,
} from '@workflow-service/database'
import { type Answer, type ModelTurn, untilLocked, waitUntil } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { callTool, end } from './support/model-agent.ts'
import { type AcceptedStart, MODEL_TIMING, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const kindsOf = (run: RunDetails) => run.steps.map(({ kind }) => kind).filter((kind) => kind !== 'note')

const fixture = useRunnerFixture('one process')
const startModelServer = useStubModel()
let acme: TestOrganization
let endpoint: TestOrganization['endpoint']
beforeEach(async () => {
  acme = await fixture.createOrganization({ description: 'Post to Order intake, then to Audit log.' })
  endpoint = acme.endpoint
})

const by = () => operatorOf(acme.organizationId)

async function setApproval(source: 'Order intake' | 'Audit log', approval: 'none' | 'first' | 'always') {
  await fixture.db.prisma.webhookSource.updateMany({
    where: { organizationId: acme.organizationId, name: source },
    data: { approval },
  })
}

const payloads = () => endpoint.requests.map(({ path, json }) => `${path} ${(json as { message: string }).message}`)

const waitForApproval = (start: AcceptedStart) => fixture.waitForStatus(start, 'waiting')

/** Starts a runner, and a run whose payload to the source waits for an approval. */
async function startWaiting(source: 'Order intake' | 'Audit log' = 'Order intake') {
  await fixture.startRunner()
  await setApproval(source, 'always')
  const start = await fixture.start(acme, { context: 'one' })
  return [start, await waitForApproval(start)] as const
}

function decide(
  { startId: runId }: AcceptedStart,
  decision: 'approved' | 'declined',
  options: { reason?: string; deliveryId?: string; payload?: Record<string, unknown> } = {},
) {
  const { reason = null, ...others } = options
  return decideApprovals(fixture.db, { decision, reason, runId, ...others }, by())
}

const wakeNow = async ({ sessionId }: AcceptedStart) =>
  await fixture.db.pool.query('UPDATE sessions SET waiting_since = now() WHERE id = $1', [sessionId])

const setPaused = async (isPaused: boolean, wakesSessions = !isPaused) => {
  const { organizationId } = acme
  const source = (await listWebhookSources(fixture.db, organizationId)).find(({ name }) => name === 'Order intake')!
  await setSourcePaused(fixture.db, source.id, isPaused, by())
  if (wakesSessions) await wakePausedSessions(fixture.db)
}
/** Waits until a runner has released the session for the paused source: not for a run that was woken and goes on. */
const untilParked = ({ startId, sessionId }: AcceptedStart): Promise<RunDetails> =>
  waitUntil(async () => {
    const session = await fixture.db.prisma.session.findUniqueOrThrow({ where: { id: sessionId } })
    return session.pausedSourceId !== null && session.leaseOwner === null ? await fixture.run(startId) : undefined
  })

const startWaitBefore3Days = ({ startId }: AcceptedStart) =>
  fixture.db.pool.query(`UPDATE run_steps SET created_at = created_at - interval '3 days' WHERE run_id = $1`, [startId])

describe('a paused source', () => {
  test('lets runs wait without a lease, whichever runner comes, and each is sent once and in order after', async () => {
    await setPaused(true)
    const first = await fixture.startRunner()
    const one = await fixture.start(acme, { context: 'one' })
    const two = await fixture.start(acme, { context: 'two', sessionId: one.sessionId })
    const parked = await untilParked(one)
    expect(parked).toMatchObject({ status: 'queued', attempts: 0 })
    await first.stop()
    // A short outage of nothing: resumed and paused again, the run waits again, with one note.
    await setPaused(false)
    await setPaused(true)
    const other = await fixture.startRunner({ sessionQueue: undefined })
    const waiting = await untilParked(one)
    expect(waiting.steps.filter(({ data }) => 'code' in data && data.code === 'source_paused')).toHaveLength(1)
    expect(whyParked(waiting)).toMatch(/^Order intake is paused/)
    expect(payloads()).toEqual([])
    await setPaused(false)
    const runs = await fixture.waitForRuns([one, two])
    expect(payloads()).toEqual(['/orders one', '/audit one', '/orders two', '/audit two'])
    expect(runs).toMatchObject([{ status: 'succeeded', attempts: 1 }, { status: 'succeeded' }])
    await other.stop()
  })

  test('fails a run that has waited for 3 days, and nothing of it is sent there', async () => {
    await setPaused(true)
    await fixture.startRunner()
    const one = await fixture.start(acme, { context: 'one' })
    await untilParked(one)
    await startWaitBefore3Days(one)
    await wakeNow(one)
    const [run] = await fixture.waitForRuns([one])
    expect(run).toMatchObject({
      status: 'failed',
      error: 'source_paused: A payload waited 3 days for Order intake, which is paused, and was not sent',
    })
    // Otherwise a resume would end a later wait of the session.
    const session = await fixture.db.prisma.session.findUniqueOrThrow({ where: { id: one.sessionId } })
    expect(session.pausedSourceId).toBeNull()
    expect(payloads()).toEqual([])
  })
})

describe('a payload to a source that asks for approval', () => {
  test('waits without a lease while runners are killed and started, and is sent once when a person approves it', async () => {
    await setApproval('Order intake', 'always')
    const killed = await fixture.startRunnerProcess()
    const one = await fixture.start(acme, { context: 'one' })
    const two = await fixture.start(acme, { context: 'two', sessionId: one.sessionId })
    const waiting = await waitForApproval(one)
    expect((await showSession(fixture.db, one.sessionId))?.lease).toBeNull()
    killed.kill('SIGKILL')
    const other = await fixture.startRunner({ sessionQueue: undefined })
    // A run of another session shows that the new runner looks for work.
    await setApproval('Order intake', 'none')
    await fixture.waitForRuns([await fixture.start(acme, { context: 'three' })])
    expect(payloads()).toEqual(['/orders three', '/audit three'])
    expect(await fixture.run(one.startId)).toEqual(waiting)
    expect(await fixture.run(two.startId)).toMatchObject({ status: 'queued', attempts: 0 })
    expect(waiting.approvals).toMatchObject([{ status: 'waiting', payload: { message: 'one' } }])

    expect(await decide(one, 'approved')).toMatchObject({ kind: 'decided' })
    const [run] = await fixture.waitForRuns([one, two])
    expect(payloads().slice(2)).toEqual(['/orders one', '/audit one', '/orders two', '/audit two'])
    expect(run).toMatchObject({
      status: 'succeeded',
      attempts: 1,
      approvals: [{ status: 'approved', decided_by: 'operator', payload: null }],
    })
    expect(run!.deliveries[0]!.id).toBe(waiting.approvals[0]!.delivery_id)
    // No delivery of a person can have such an id.
    expect(run!.deliveries.map(({ id }) => isDeliveryIdOfRun(id))).toEqual([true, true])
    expect(kindsOf(run!)).toEqual([
      'message',
      'tool_call',
      'tool_call',
      'approval_request',
      'approval_decision',
      'tool_result',
      'tool_result',
    ])
    await other.stop()
  })

  test('is sent as the person has edited it, under the same id, and the journal shows the edit', async () => {
    const [one, waiting] = await startWaiting()
    const { delivery_id: deliveryId } = waiting.approvals[0]!
    const edit = (payload: Record<string, unknown>) =>
      decideApprovals(fixture.db, { decision: 'approved', reason: null, deliveryId, payload }, by())
    expect(await edit({ message: 17 })).toMatchObject({
      kind: 'invalid',
      reason: expect.stringContaining('message'),
    })
    expect((await fixture.run(one.startId)).status).toBe('waiting')
    // Sources are locked before sessions, as in a save of the source, so that the two never wait for each other.
    const [decided] = await inTransaction(fixture.db, async (client) => {
      await client.query('UPDATE webhook_sources SET version = version')
      const editing = edit({ message: 'one, corrected' })
      await untilLocked(fixture.db.pool, 'FOR SHARE OF source')
      await client.query('SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE NOWAIT', [one.sessionId])
      return [editing]
    })
    expect(await decided).toMatchObject({ kind: 'decided' })
    const [run] = await fixture.waitForRuns([one])
    expect(payloads()).toEqual(['/orders one, corrected', '/audit one'])
    expect(run).toMatchObject({ status: 'succeeded', deliveries: [{ id: deliveryId }, {}] })
    expect(run!.steps.find(({ kind }) => kind === 'approval_decision')?.data).toMatchObject({
      decision: 'approved',
      payload: { message: 'one, corrected' },
    })
  })

  test('is never sent when a person declines it; the run fails with the reason, after its other payloads', async () => {
    const [one] = await startWaiting()
    await decide(one, 'declined', { reason: 'The total is wrong.' })
    const [run] = await fixture.waitForRuns([one])
    const error =
      'delivery_declined: Nothing was sent to Order intake: operator declined the payload: The total is wrong'
    expect(run).toMatchObject({ status: 'failed', error })
    expect(payloads()).toEqual(['/audit one'])
  })

  test('counts as declined when its time is over, and can no longer be approved', async () => {
    const [one] = await startWaiting('Audit log')
    await fixture.db.pool.query('UPDATE approvals SET expires_at = now() WHERE run_id = $1', [one.startId])
    await wakeNow(one)
    const [run] = await fixture.waitForRuns([one])
    expect(run!.error).toMatch(/^approval_expired: Nothing was sent to Audit log: no person approved .* within 7 days$/)
    expect(payloads()).toEqual(['/orders one'])
    expect(await decide(one, 'approved')).toEqual({ kind: 'not_waiting' })
    const expired = { where: { organizationId: acme.organizationId, action: 'delivery.expired' } }
    expect(await fixture.db.prisma.auditEvent.count(expired)).toBe(1)
  })

  test('is sent when it is approved just before its time is over, although a runner has begun to look', async () => {
    const [one] = await startWaiting('Audit log')
    await fixture.db.pool.query('UPDATE approvals SET expires_at = now() WHERE run_id = $1', [one.startId])
    await inTransaction(fixture.db, async (client) => {
      // What a decision has written that began in time, and that waited for the lock of the session.
      const decided = `status = 'approved', decided_at = now(), decided_by_name = 'Ada'`
      await client.query(`UPDATE approvals SET ${decided} WHERE run_id = $1`, [one.startId])
      await wakeNow(one)
      await untilLocked(fixture.db.pool, `status = 'expired'`)
    })
    const [run] = await fixture.waitForRuns([one])
    expect(run).toMatchObject({ status: 'succeeded', approvals: [{ status: 'approved', decided_by: 'Ada' }] })
    expect(payloads()).toEqual(['/orders one', '/audit one'])
  })

  test('can no longer be decided once its run has failed, since nothing would be sent', async () => {
    await setApproval('Audit log', 'always')
    const [one, { approvals }] = await startWaiting()
    await setPaused(true)
    await decide(one, 'approved', { deliveryId: approvals[0]!.delivery_id })
    await untilParked(one)
    await startWaitBefore3Days(one)
    await wakeNow(one)
    const [run] = await fixture.waitForRuns([one])
    expect(run!.error).toMatch(/^source_paused: /)
    expect(await decide(one, 'approved')).toEqual({ kind: 'not_waiting' })
    const approved = { organizationId: acme.organizationId, action: 'delivery.approved' }
    expect(await fixture.db.prisma.auditEvent.count({ where: approved })).toBe(1)
  })

  test('asks together with the planned payloads after it; an approval of one sends it in its turn', async () => {
    await setApproval('Audit log', 'always')
    const [one, { approvals }] = await startWaiting()
    const idOf = (name: string) => approvals.find(({ source_name: source }) => source === name)!.delivery_id
    expect(await decide(one, 'approved', { deliveryId: idOf('Audit log') })).toMatchObject({ kind: 'decided' })
    await waitForApproval(one)
    expect(payloads()).toEqual([])
    expect(await decide(one, 'approved')).toMatchObject({ deliveryIds: [idOf('Order intake')] })
    await fixture.waitForRuns([one])
    expect(payloads()).toEqual(['/orders one', '/audit one'])
  })

  test('needs no approval after the first accepted one, if the source asks only for the first', async () => {
    await fixture.startRunner()
    await setApproval('Order intake', 'first')
    endpoint.answerWith((_request, index) => ({ status: index === 0 ? 500 : 204 }))
    const rejected = await fixture.start(acme, { context: 'rejected' })
    await waitForApproval(rejected)
    await decide(rejected, 'approved')
    await fixture.waitForRuns([rejected])
    const accepted = await fixture.start(acme, { context: 'accepted' })
    await waitForApproval(accepted)
    await decide(accepted, 'approved')
    const next = await fixture.start(acme, { context: 'next', sessionId: accepted.sessionId })
    const [, run] = await fixture.waitForRuns([accepted, next])
    expect(run).toMatchObject({ status: 'succeeded', approvals: [] })
    expect(payloads().filter((payload) => payload.startsWith('/orders'))).toEqual([
      '/orders rejected',
      '/orders accepted',
      '/orders next',
    ])
  })

  test('that was approved while the organization is suspended is sent after it is resumed', async () => {
    const [one] = await startWaiting()
    const where = { id: acme.organizationId }
    await fixture.db.prisma.organization.update({ where, data: { isSuspended: true } })
    await decide(one, 'approved')
    await fixture.queue.publish({ session_id: one.sessionId })
    // A run of another organization shows that the runner has looked since.
    const globex = await fixture.createOrganization()
    await fixture.waitForRuns([await fixture.start(globex)])
    expect(payloads()).toEqual([])
    await fixture.db.prisma.organization.update({ where, data: { isSuspended: false } })
    await fixture.waitForRuns([one])
    expect(payloads()).toEqual(['/orders one', '/audit one'])
  })

  test('waits although the source asked for none when it was planned, and still waits when it asks for none again', async () => {
    await fixture.startRunner()
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async ({ path }) => {
      if (path === '/orders') await promise
      return { status: 204 }
    })
    const one = await fixture.start(acme, { context: 'one' })
    await endpoint.waitForRequests(1)
    await setApproval('Audit log', 'always')
    resolve()
    await waitForApproval(one)
    await setApproval('Audit log', 'none')
    await fixture.queue.publish({ session_id: one.sessionId })
    await fixture.waitForRuns([await fixture.start(acme, { context: 'two' })])
    expect(await fixture.run(one.startId)).toMatchObject({ status: 'waiting' })
    await decide(one, 'approved')
    await fixture.waitForRuns([one])
    expect(payloads()).toEqual(['/orders one', '/orders two', '/audit two', '/audit one'])
  })

  test.each([
    [
      'waits for an approval of the new URL when the URL is being edited',
      `endpoint_url = endpoint_url || '/new'`,
      true,
    ],
    ['does not wait when the source is being deleted', 'deleted_at = now()', false],
  ])('%s while it asks', async (_what, change, isWaiting) => {
    await fixture.startRunner()
    await setApproval('Order intake', 'always')
    const one = await inTransaction(fixture.db, async (client) => {
      const where = `organization_id = $1 AND name = 'Order intake'`
      await client.query(`UPDATE webhook_sources SET ${change} WHERE ${where}`, [acme.organizationId])
      const started = await fixture.start(acme, { context: 'one' })
      await untilLocked(fixture.db.pool, 'FROM webhook_sources')
      return started
    })
    const { approvals } = await fixture.waitForStatus(one, isWaiting ? 'waiting' : 'failed')
    expect(approvals.map(({ endpoint_url: url }) => url)).toEqual(isWaiting ? [`${endpoint.url}/orders/new`] : [])
    expect(payloads()).toEqual(isWaiting ? [] : ['/audit one'])
  })
})

/** Starts a model with these turns, and a runner of it. */
async function startModel(...turns: ModelTurn[]) {
  const model = await startModelServer({ turns, otherwise: end('nothing_to_do') })
  const env = { AGENT_MODEL: 'openai-compatible:stub', AGENT_BASE_URL: model.baseUrl, AGENT_API_KEY: 'k' }
  await fixture.startRunner({ timing: MODEL_TIMING }, env)
  return model
}

test('a model learns that its payload was declined and why, and fails the run unless it corrects it', async () => {
  const [wrong, right] = ['wrong', 'right'].map((message) => callTool('send_to_audit_log', { message }))
  const model = await startModel(wrong!, right!, end())
  await setApproval('Audit log', 'always')
  const one = await fixture.start(acme, { context: 'one' })
  await waitForApproval(one)
  await decide(one, 'declined', { reason: 'The total is wrong.' })
  await waitUntil(async () => (await fixture.run(one.startId)).approvals.length === 2)
  expect(JSON.stringify(model.requests[1]?.body)).toContain('operator declined the payload: The total is wrong.')
  await waitForApproval(one)
  await decide(one, 'approved')
  const [run] = await fixture.waitForRuns([one])
  expect(run).toMatchObject({ status: 'succeeded', error: null })
  expect(payloads()).toEqual(['/audit right'])
  expect(model.requests).toHaveLength(3)
})

test('a model and the next run of the session learn how a person has edited the payload, and neither form is sent again', async () => {
  const [asked, sent] = ['ten', 'one'].map((message) => callTool('send_to_audit_log', { message }))
  const model = await startModel(asked!, asked!, sent!, end())
  await setApproval('Audit log', 'first')
  const one = await fixture.start(acme, { context: 'order' })
  const { approvals } = await waitForApproval(one)
  await decide(one, 'approved', { deliveryId: approvals[0]!.delivery_id, payload: { message: 'one' } })
  const [run] = await fixture.waitForRuns([one])
  expect(run).toMatchObject({ status: 'succeeded', error: null })
  expect(payloads()).toEqual(['/audit one'])
  const note = 'A person had changed the payload to {"message":"one"}.'
  expect(model.requests[1]!.conversation.messages.at(-1)!.results[0]!.text).toContain(note)
  await fixture.waitForRuns([await fixture.start(acme, { sessionId: one.sessionId })])
  expect(model.requests.at(-1)!.conversation.messages[0]!.text).toMatch(/Sent to Audit log: \{"message":"one"\}\nAcc/)
})

const viewer = () => ({ organizationId: acme.organizationId, memberId: null })
const cancel = ({ startId }: AcceptedStart) => cancelRun(fixture.db, viewer(), startId, by())

/** The endpoint answers its next request when the returned function is called. */
function holdNextAnswer(): () => void {
  const held = Promise.withResolvers<Answer>()
  endpoint.answerWith((_, index) => (index === 0 ? held.promise : { status: 204 }))
  return () => held.resolve({ status: 204 })
}

async function startThree(): Promise<[AcceptedStart, AcceptedStart, AcceptedStart]> {
  const one = await fixture.start(acme, { context: 'one' })
  const follow = (context: string) => fixture.start(acme, { context, sessionId: one.sessionId })
  return [one, await follow('two'), await follow('three')]
}

/** Starts three runs of a session, and waits until the payload of the first is under way. */
async function startThreeAndHoldFirst() {
  const answer = holdNextAnswer()
  await fixture.startRunner()
  const [one, two, three] = await startThree()
  await endpoint.waitForRequests(1)
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

  test.each([
    ['one that is accepted after it was', async (): Promise<unknown> => undefined],
    ['one behind others that are cancelled, too', (two: AcceptedStart) => cancel(two)],
    [
      'one that is accepted after the others were cancelled together',
      ({ sessionId: id }: AcceptedStart) => cancelQueuedRuns(fixture.db, viewer(), { kind: 'session', id }, by()),
    ],
  ])('while its payload is under way lets no start go ahead of that payload: %s', async (_which, cancelOthers) => {
    const answer = holdNextAnswer()
    await fixture.startRunner()
    const one = await fixture.start(acme, { context: 'one' })
    await endpoint.waitForRequests(1)
    const follow = (context: string) => fixture.start(acme, { context, sessionId: one.sessionId })
    const others = cancelOthers.length > 0 ? [await follow('two')] : []
    await cancel(one)
    for (const two of others) await cancelOthers(two)
    const last = await follow('last')
    const session = await fixture.db.prisma.session.findUniqueOrThrow({ where: { id: one.sessionId } })
    expect(session.waitingSince!.getTime()).toBeGreaterThan(Date.now() + 20_000)
    answer()
    await fixture.waitForRuns([last])
    expect(payloads()).toEqual(['/orders one', '/orders last', '/audit last'])
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
    const ended = { number: 1, status: 'succeeded', error: null, shouldClaimNext: false } as const
    await finishRuns(fixture.db, owner, [{ lease: sessions[0]!.lease, ...ended }])
    await fixture.startRunner()
    const runs = await fixture.waitForRuns([one, two, three])
    expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'cancelled', 'succeeded'])
    expect(payloads()).toEqual(['/orders three', '/audit three'])
  })

  test('while it waits for an approval declines the payload', async () => {
    await setApproval('Audit log', 'always')
    const [one] = await startWaiting()
    expect(await cancel(one)).toMatchObject({ kind: 'cancelled' })
    const { status, approvals } = await fixture.run(one.startId)
    const declined = { status: 'declined', reason: 'The run was cancelled.', decided_by: 'operator' }
    expect({ status, approvals }).toMatchObject({ status: 'cancelled', approvals: [declined, declined] })
    expect(payloads()).toEqual([])
  })

  test('while it waits for a paused source lets its session go on', async () => {
    await setPaused(true)
    await fixture.startRunner()
    const one = await fixture.start(acme, { context: 'one' })
    const isParked = { id: one.sessionId, pausedSourceId: { not: null } }
    await waitUntil(async () => (await fixture.db.prisma.session.count({ where: isParked })) > 0)
    const two = await fixture.start(acme, { context: 'two', sessionId: one.sessionId })
    await setPaused(false, false)
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
