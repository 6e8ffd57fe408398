import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { claimDeliveries, inTransaction, newDeliveryId, newId } from '@workflow-service/database'
import type { RunningService } from '@workflow-service/service-kit'
import { beginTransaction, untilLocked } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import type { OutboundResult } from '../src/outbound/outbound-result.ts'
import { parseSubnets } from '../src/outbound/parse-subnets.ts'
import { createSendRequest } from '../src/outbound/send-request.ts'
import { callDispatcher, type InternalResponse, PAYLOAD, refusal, sourceIn } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
const sentBy = newId()
let sourceId: string
beforeAll(async () => {
  sourceId = await dispatcher.saveSource()
})

const resend = (id: string, resendOf: string, change: Record<string, unknown> = {}): Promise<InternalResponse> =>
  dispatcher.call('PUT', `/internal/deliveries/${id}`, {
    organization_id: dispatcher.organizationId,
    resend_of: resendOf,
    sent_by: sentBy,
    ...change,
  })

/** Sends a payload, which the endpoint rejects, and returns its delivery's id. */
async function sendRejected(change: Record<string, unknown> = {}): Promise<string> {
  const id = newId()
  dispatcher.endpoint.answerWith({ status: 500 })
  await dispatcher.send(id, { source_id: sourceId, ...change })
  dispatcher.endpoint.answerWith({ status: 204 })
  dispatcher.endpoint.requests.length = 0
  return id
}

const code = (response: InternalResponse): [number, string] => [response.status, response.body.error.code]

describe('sending a payload again', () => {
  test('is a new delivery of the same payload, run and session, signed with the current secret', async () => {
    const source = await dispatcher.saveSource({ signing_secret: 'the first secret' })
    const [runId, sessionId] = [newId(), await dispatcher.createSession(4)]
    const first = await sendRejected({
      source_id: source,
      run_id: runId,
      lease: { session_id: sessionId, epoch: 4 },
    })
    await dispatcher.saveSource({ signing_secret: 'the second secret' }, 'never', source)
    await dispatcher.db.prisma.session.update({ where: { id: sessionId }, data: { leaseEpoch: 5 } })
    const id = newId()
    const response = await resend(id, first)
    expect(response).toMatchObject({
      status: 200,
      body: { id, kind: 'payload', outcome: 'accepted', resend_of: first, sent_by: sentBy },
    })
    expect(response.body).toMatchObject({ request_body: PAYLOAD, run_id: runId, session_id: sessionId })
    const [request, ...others] = dispatcher.endpoint.requests
    expect(others).toEqual([])
    expect(request?.json).toEqual(PAYLOAD)
    expect(await checkServiceToken(request?.headers['x-service-token'], 'the second secret')).toMatchObject({
      ok: true,
    })
    expect((await dispatcher.readLog(source)).slice(0, 2)).toEqual([
      response.body,
      expect.objectContaining({ id: first, outcome: 'rejected', resend_of: null, sent_by: null }),
    ])
  })

  test('happens once for an id, however often it is requested, also after the earlier delivery was deleted', async () => {
    const [first, id] = [await sendRejected(), newId()]
    const responses = await Promise.all([resend(id, first), resend(id, first), resend(id, first)])
    await dispatcher.db.prisma.delivery.delete({ where: { id: first } })
    responses.push(await resend(id, first))
    expect(new Set(responses.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(responses[0]?.body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('of a delivery that was sent again is possible', async () => {
    const [first, second, third] = [await sendRejected(), newId(), newId()]
    await resend(second, first)
    expect((await resend(third, second)).body).toMatchObject({ outcome: 'accepted', resend_of: second })
    // At once, too, each has the next number.
    await Promise.all([newId(), newId(), newId()].map((id) => resend(id, first)))
    const { requests } = dispatcher.endpoint
    const sent = requests.map(({ headers }) => [headers['x-delivery-id'], headers['x-delivery-attempt']].join(' '))
    expect(sent.toSorted()).toEqual([2, 3, 4, 5, 6].map((attempt) => `${first} ${attempt}`))
  })

  test('leaves connections to other payloads while many claims wait for one', async () => {
    const first = await sendRejected()
    const { pool } = dispatcher.db
    using client = await beginTransaction(pool)
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`resends of ${first}`])
    // The claim waits for the lock, on a slow machine beyond the time limit of its statement.
    const resendUntilSent = async (id: string): Promise<InternalResponse> => {
      const response = await resend(id, first)
      if (response.status !== 503) return response
      await sleep(100)
      return await resendUntilSent(id)
    }
    const resending = Array.from({ length: 30 }, () => resendUntilSent(newId()))
    await untilLocked(pool, 'pg_advisory_xact_lock')
    expect((await dispatcher.send(newId(), { source_id: sourceId })).body.outcome).toBe('accepted')
    const { rowCount } = await pool.query(
      `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
       WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`,
    )
    await client.query('COMMIT')
    const responses = await Promise.all(resending)
    expect(responses.map(({ body }) => body.outcome)).toEqual(responses.map(() => 'accepted'))
    expect(rowCount).toBeLessThanOrEqual(4)
  })

  test('does not wait for the claims of another payload, however many of these wait', async () => {
    const [first, other] = [await sendRejected(), await sendRejected()]
    using client = await beginTransaction(dispatcher.db.pool)
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`resends of ${first}`])
    const resending = Array.from({ length: 30 }, () => resend(newId(), first))
    await untilLocked(dispatcher.db.pool, 'pg_advisory_xact_lock')
    const response = await resend(newId(), other)
    await client.query('COMMIT')
    await Promise.all(resending)
    expect(response.body).toMatchObject({ outcome: 'accepted', resend_of: other })
  })

  test('is invalid when the payload does not follow the current example, which is no attempt', async () => {
    const source = await dispatcher.saveSource()
    const first = await sendRejected({ source_id: source })
    await dispatcher.saveSource({ example_request_body: { order: 'A-1' } }, 'never', source)
    expect((await resend(newId(), first)).body).toMatchObject({ outcome: 'invalid', mismatches: expect.anything() })
    expect(dispatcher.endpoint.requests).toEqual([])
    await dispatcher.saveSource({}, 'never', source)
    await resend(newId(), first)
    expect(dispatcher.endpoint.requests).toMatchObject([{ headers: { 'x-delivery-attempt': '2' } }])
  })
})

describe('is refused before anything is sent or recorded', () => {
  test('for a verification request', async () => {
    const [verification] = await dispatcher.readLog(sourceId)
    const log = await dispatcher.db.prisma.delivery.findFirst({ where: { sourceId, kind: 'verification' } })
    expect(verification).toBeDefined()
    expect(code(await resend(newId(), log!.id))).toEqual([409, 'not_resendable'])
  })

  test('while the earlier one is in flight', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    dispatcher.endpoint.answerWith(async () => {
      await promise
      return { status: 204 }
    })
    const [first, id] = [newId(), newId()]
    const sending = dispatcher.send(first, { source_id: sourceId })
    await dispatcher.endpoint.waitForRequests(1)
    expect(code(await resend(id, first))).toEqual([409, 'not_resendable'])
    resolve()
    await sending
    expect((await resend(id, first)).body.outcome).toBe('accepted')
  })

  test('after its source was deleted', async () => {
    const source = await dispatcher.saveSource()
    const first = await sendRejected({ source_id: source })
    await dispatcher.call('DELETE', dispatcher.sourcePath(source))
    const id = newId()
    expect(code(await resend(id, first))).toEqual([409, 'not_resendable'])
    expect(await dispatcher.isRecorded(id)).toBe(false)
  })

  test('for an unknown delivery, and one of another organization or source', async () => {
    const first = await sendRejected()
    const other = await dispatcher.createOrganization()
    expect(code(await resend(newId(), newId()))).toEqual([404, 'not_found'])
    expect(code(await resend(newId(), first, { organization_id: other }))).toEqual([404, 'not_found'])
    expect(code(await resend(newId(), first, { source_id: newId() }))).toEqual([404, 'not_found'])
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('when the id was used for anything else', async () => {
    const [first, second] = [await sendRejected(), await sendRejected()]
    const id = newId()
    await resend(id, first)
    expect(code(await resend(id, second))).toEqual([409, 'idempotency_conflict'])
    expect(code(await resend(second, first))).toEqual([409, 'idempotency_conflict'])
    expect(code(await dispatcher.send(id, { source_id: sourceId }))).toEqual([409, 'idempotency_conflict'])
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test.each([
    ['payload', { payload: PAYLOAD }],
    ['run_id', { run_id: newId() }],
    ['lease', { lease: { session_id: newId(), epoch: 1 } }],
  ])('with %s too', async (field, change) => {
    const response = await resend(newId(), newId(), change)
    expect(response.body.error.details).toEqual([expect.objectContaining({ field, code: 'extra_forbidden' })])
  })

  test('and a body with neither payload nor resend_of lacks both fields of a new payload', async () => {
    const body = { organization_id: dispatcher.organizationId }
    const response = await dispatcher.call('PUT', `/internal/deliveries/${newId()}`, body)
    expect(response.body.error.details.map(({ field, code: found }) => [field, found])).toEqual([
      ['source_id', 'missing'],
      ['payload', 'missing'],
    ])
  })
})

let guardedId: string

/** Inserts an approval as a person gives it; the payload is sent under its id. */
async function approve(id: string, { status = 'approved', payload = PAYLOAD } = {}): Promise<void> {
  const { organizationId } = dispatcher
  const { pool } = dispatcher.db
  const { runIds } = await dispatcher.createRuns(1)
  await pool.query(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, status, expires_at, decided_at)
     VALUES ($1, $2, $3, $4, 'Orders', $5, $6, now(), CASE WHEN $6 <> 'waiting' THEN now() END)`,
    [id, organizationId, runIds[0], guardedId, JSON.stringify(payload), status],
  )
}

const sendGuarded = (id: string) => dispatcher.send(id, { source_id: guardedId })
const moveTo = (path: string) =>
  dispatcher.saveSource({ endpoint_url: `${dispatcher.endpoint.url}${path}`, approval: 'always' }, 'never', guardedId)
const statusOf = async (id: string) =>
  (await dispatcher.db.prisma.approval.findUniqueOrThrow({ where: { deliveryId: id } })).status

async function addUser(role: 'owner' | 'admin' | 'member', isActive = true): Promise<string> {
  const id = newId()
  const email = `${id}@acme.test`
  await dispatcher.db.pool.query(
    `INSERT INTO users (id, organization_id, email, role, deactivated_at)
     VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN NULL ELSE now() END)`,
    [id, dispatcher.organizationId, email, role, isActive],
  )
  return id
}

const REFUSED = refusal(409, 'approval_required')
const ACCEPTED = { status: 200, body: { outcome: 'accepted' } }

describe('a payload to a source that asks for approval', () => {
  beforeEach(async () => {
    guardedId = await dispatcher.saveSource({ approval: 'always' })
    dispatcher.endpoint.requests.length = 0
  })

  test.each([
    ['has no approval', null],
    ['waits', { status: 'waiting' }],
    ['was declined', { status: 'declined' }],
    ['was approved with other values', { payload: { ...PAYLOAD, total: -1 } }],
  ])('is refused and not recorded if it %s', async (_what, approval) => {
    const id = newId()
    if (approval) await approve(id, approval)
    expect(await sendGuarded(id)).toMatchObject(REFUSED)
    expect(dispatcher.endpoint.requests).toEqual([])
    expect(await dispatcher.db.prisma.delivery.count({ where: { id } })).toBe(0)
  })

  test('is sent once under the id that was approved', async () => {
    const id = newId()
    await approve(id)
    expect(await sendGuarded(id)).toMatchObject(ACCEPTED)
    expect(await sendGuarded(id)).toMatchObject(ACCEPTED)
    expect(await sendGuarded(newId())).toMatchObject(REFUSED)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('is sent again only by a person who may approve it, or the operator', async () => {
    const id = newId()
    await approve(id)
    await sendGuarded(id)
    dispatcher.endpoint.requests.length = 0
    for (const refused of [await addUser('member'), await addUser('admin', false), newId()]) {
      const resent = newId()
      expect(await resend(resent, id, { sent_by: refused })).toMatchObject(REFUSED)
      expect(await dispatcher.isRecorded(resent)).toBe(false)
    }
    expect(dispatcher.endpoint.requests).toEqual([])
    for (const allowed of [await addUser('admin'), await addUser('owner'), null]) {
      expect(await resend(newId(), id, { sent_by: allowed })).toMatchObject(ACCEPTED)
    }
    await dispatcher.saveSource({ approval: 'none' }, 'never', guardedId)
    expect(await resend(newId(), id, { sent_by: await addUser('member') })).toMatchObject({ status: 200 })
    expect(dispatcher.endpoint.requests).toHaveLength(4)
  })

  test('keeps its id until it is sent: nothing can be sent again under it', async () => {
    const [earlier, id] = [newId(), newId()]
    await approve(earlier)
    await sendGuarded(earlier)
    await approve(id, { status: 'waiting' })
    const conflict = refusal(409, 'idempotency_conflict')
    // The second is one that a run has planned, and that asks for no approval.
    for (const taken of [id, newDeliveryId()])
      expect(await resend(taken, earlier, { sent_by: null })).toMatchObject(conflict)
    const data = { status: 'approved', decidedAt: new Date() }
    await dispatcher.db.prisma.approval.update({ where: { deliveryId: id }, data })
    expect(await sendGuarded(id)).toMatchObject(ACCEPTED)
  })

  test('is not sent to another URL than was approved: an edit of the URL ends the approval, another edit does not', async () => {
    const [sent, waiting, approved] = [newId(), newId(), newId()]
    await approve(sent)
    await sendGuarded(sent)
    await approve(waiting, { status: 'waiting' })
    await approve(approved)
    await dispatcher.saveSource({ description: 'Other words.', approval: 'always' }, 'never', guardedId)
    expect([await statusOf(waiting), await statusOf(approved)]).toEqual(['waiting', 'approved'])
    await moveTo('/elsewhere')
    expect(await sendGuarded(approved)).toMatchObject(REFUSED)
    const statuses = await Promise.all([sent, waiting, approved].map(statusOf))
    expect(statuses).toEqual(['approved', 'declined', 'declined'])
    expect(dispatcher.endpoint.requests.map(({ path }) => path)).toEqual(['/'])
  })

  test('stays approved when an edit of the URL comes while it is being claimed: it is sent to the approved URL', async () => {
    const id = newId()
    await approve(id)
    const { db, organizationId } = dispatcher
    const request = {
      id,
      organizationId,
      sourceId: guardedId,
      requestBody: JSON.stringify(PAYLOAD),
      runId: null,
      requestId: 'r',
    }
    const edit = await inTransaction(db, async (client) => {
      const [claim] = await claimDeliveries({ pool: client }, [{ ...request, lease: null, resend: null }])
      expect(claim).toMatchObject({ kind: 'claimed', target: { endpointUrl: dispatcher.endpoint.url } })
      const saved = moveTo('/elsewhere')
      await untilLocked(db.pool)
      return { saved }
    })
    await edit.saved
    expect(await statusOf(id)).toBe('approved')
  })

  test('needs another first approval after a save with another URL, not with another description', async () => {
    await dispatcher.saveSource({ approval: 'first' }, 'never', guardedId)
    const id = newId()
    await approve(id)
    await sendGuarded(id)
    await dispatcher.saveSource({ description: 'Other words.' }, 'never', guardedId)
    expect(await sendGuarded(newId())).toMatchObject({ status: 200 })
    await dispatcher.saveSource({ endpoint_url: `${dispatcher.endpoint.url}/other` }, 'never', guardedId)
    expect(await sendGuarded(newId())).toMatchObject(REFUSED)
  })
})

const sendAt = (id: string, url?: string, change: Record<string, unknown> = {}): Promise<InternalResponse> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

const unavailable = refusal(503, 'service_unavailable')

describe('a connection that the service cannot open', () => {
  const shortage: OutboundResult = { kind: 'unavailable', detail: 'the service has no files left', durationMs: 1 }
  const realRequest = createSendRequest({ allowedSubnets: parseSubnets('127.0.0.0/8') })
  const sendRequest = jest.fn(realRequest)
  let short: RunningService

  beforeAll(async () => {
    short = await dispatcher.startAnother({ sendRequest })
  })
  beforeEach(() => void sendRequest.mockClear())

  /** Sends a payload as far as its claim; `resolve` gives the result of its request. */
  async function beginSending() {
    const { promise, resolve } = Promise.withResolvers<OutboundResult>()
    sendRequest.mockReturnValueOnce(promise)
    const id = newId()
    const call = sendAt(id, short.url)
    while (!(await dispatcher.isRecorded(id))) await new Promise(setImmediate)
    return { id, call, resolve }
  }

  test('is 503 without a trace, and the same id is sent later, by any dispatcher', async () => {
    sendRequest.mockResolvedValueOnce(shortage)
    const id = newId()
    const response = await sendAt(id, short.url)
    expect(response).toMatchObject(unavailable)
    expect(response.body.error.message).toBe(
      'The service has no files left. Nothing was sent. Repeat the call with the same id.',
    )
    expect(await dispatcher.isRecorded(id)).toBe(false)
    expect((await sendAt(id)).body.outcome).toBe('accepted')
    expect((await sendAt(id, short.url)).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('lets a call that waited for the outcome ask again, and not end as a conflict', async () => {
    const { promise, resolve } = Promise.withResolvers<OutboundResult>()
    sendRequest.mockReturnValueOnce(promise)
    const id = newId()
    const first = sendAt(id, short.url)
    while (sendRequest.mock.calls.length === 0) await new Promise(setImmediate)
    const second = sendAt(id)
    resolve(shortage)
    expect(await first).toMatchObject(unavailable)
    const { status, body } = await second
    // The second call may have arrived after the claim was removed.
    expect(status === 503 || body.outcome === 'accepted').toBe(true)
    expect((await sendAt(id)).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('that became unknown meanwhile is recorded as refused, because it was not sent', async () => {
    const { id, call, resolve } = await beginSending()
    const change = { outcome: 'unknown', finishedAt: new Date() }
    await dispatcher.db.prisma.delivery.update({ where: { id }, data: change })
    resolve(shortage)
    expect((await call).body).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(/Nothing was sent/) })
    expect((await sendAt(id)).body.outcome).toBe('refused')
  })

  test('is 503 also when the claim is gone already, as after a removal whose answer was lost', async () => {
    const { id, call, resolve } = await beginSending()
    await dispatcher.db.prisma.delivery.delete({ where: { id } })
    resolve(shortage)
    expect(await call).toMatchObject(unavailable)
    expect((await sendAt(id)).body.outcome).toBe('accepted')
  })

  test('leaves the outcome to another dispatcher that has claimed the id anew meanwhile, and sends it', async () => {
    const { id, call, resolve } = await beginSending()
    const { createdAt } = await dispatcher.db.prisma.delivery.delete({ where: { id } })
    // The time of the record is in milliseconds.
    while (Date.now() <= createdAt.getTime()) await new Promise(setImmediate)
    const answer = Promise.withResolvers<void>()
    dispatcher.endpoint.answerWith(async () => {
      await answer.promise
      return { status: 204 }
    })
    const sending = sendAt(id)
    while (dispatcher.endpoint.requests.length === 0) await new Promise(setImmediate)
    resolve(shortage)
    const { status } = await call
    answer.resolve()
    expect((await sending).body.outcome).toBe('accepted')
    expect(status).toBe(503)
    expect((await dispatcher.db.prisma.delivery.findUnique({ where: { id } }))?.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('is 503 for a save, and not a failed verification', async () => {
    sendRequest.mockResolvedValueOnce(shortage)
    const id = newId()
    const response = await callDispatcher(short.url, 'PUT', dispatcher.sourcePath(id), sourceIn({}))
    expect(response).toMatchObject(unavailable)
    expect((await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries`)).status).toBe(404)
  })

  test('leaves no doubt in the log of a source, also if the record of its verification cannot be removed', async () => {
    const { db } = dispatcher
    const id = await dispatcher.saveSource({}, 'never')
    await db.pool.query(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'busy' USING ERRCODE = '57014';
      END $$;
      CREATE TRIGGER fail BEFORE DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION fail()`)
    sendRequest.mockResolvedValueOnce(shortage)
    const body = sourceIn({ endpoint_url: dispatcher.endpoint.url })
    const response = await callDispatcher(short.url, 'PUT', dispatcher.sourcePath(id), body)
    await db.pool.query('DROP FUNCTION fail CASCADE')
    expect(response).toMatchObject(unavailable)
    expect(response.body.error.message).toContain('Nothing was sent. Try again in a moment.')
    const reason = 'The service has no files left. Nothing was sent.'
    expect(await dispatcher.readLog(id)).toMatchObject([{ kind: 'verification', outcome: 'refused', reason }])
  })
})

describe('a rotation of SECRETS_KEY', () => {
  const [oldKey, newKey] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]

  test('one dispatcher after another loses no payload: a key that is not known yet is 503', async () => {
    const behind = await dispatcher.startAnother({}, { secretsKeys: [oldKey] })
    const ahead = await dispatcher.startAnother({}, { secretsKeys: [newKey, oldKey] })
    const id = newId()
    const path = dispatcher.sourcePath(id)
    const body = sourceIn({ endpoint_url: dispatcher.endpoint.url, signing_secret: 'sealed with the new key' })
    expect((await callDispatcher(ahead.url, 'PUT', path, body)).status).toBe(201)
    dispatcher.endpoint.requests.length = 0

    const deliveryId = newId()
    expect(await sendAt(deliveryId, behind.url, { source_id: id })).toMatchObject(unavailable)
    expect(await dispatcher.isRecorded(deliveryId)).toBe(false)
    const { signing_secret: _, ...withoutSecret } = body
    expect(await callDispatcher(behind.url, 'PUT', path, withoutSecret)).toMatchObject(unavailable)
    expect(await callDispatcher(behind.url, 'POST', `${path}/test`)).toMatchObject(unavailable)
    const { organizationId } = dispatcher
    const notices = `/internal/organizations/${organizationId}/notice`
    const webhook = { url: dispatcher.endpoint.url, signing_secret: 'sealed with the new key' }
    expect((await callDispatcher(ahead.url, 'PUT', `${notices}-webhook`, webhook)).status).toBe(204)
    const created = { organization_id: organizationId, created_at: new Date().toISOString() }
    const notice = { id: newId(), type: 'notice.test', ...created, text: 'A test', data: {} }
    expect(await callDispatcher(behind.url, 'POST', `${notices}s`, notice)).toMatchObject(unavailable)
    expect(dispatcher.endpoint.requests).toEqual([])

    const updated = await dispatcher.startAnother({}, { secretsKeys: [oldKey, newKey] })
    expect((await sendAt(deliveryId, updated.url, { source_id: id })).body.outcome).toBe('accepted')
    expect((await sendAt(deliveryId, behind.url, { source_id: id })).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

describe('a dispatcher that was delayed for longer than 8 s after its claim', () => {
  afterEach(() => void jest.restoreAllMocks())

  test('does not send, answers 503, and the id can be sent later', async () => {
    const delayed = await dispatcher.startAnother()
    const id = newId()
    let calls = 0
    const now = performance.now.bind(performance)
    // The claim is the first that reads the clock after the call for a slot.
    jest.spyOn(performance, 'now').mockImplementation(() => now() + calls++ * 10_000)
    const response = await sendAt(id, delayed.url)
    jest.restoreAllMocks()
    expect(response).toMatchObject(unavailable)
    expect(dispatcher.endpoint.requests).toEqual([])
    expect((await sendAt(id, delayed.url)).body.outcome).toBe('accepted')
  })
})
