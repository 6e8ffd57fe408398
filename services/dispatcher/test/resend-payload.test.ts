import { beforeAll, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { type Answer, PAYLOAD } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
const sentBy = newId()
let sourceId: string
beforeAll(async () => {
  sourceId = await dispatcher.saveSource()
})

const resend = (id: string, resendOf: string, change: Record<string, unknown> = {}): Promise<Answer> =>
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

const code = (answer: Answer): [number, string] => [answer.status, answer.body.error.code]

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
    const answer = await resend(id, first)
    expect(answer).toMatchObject({
      status: 200,
      body: { id, kind: 'payload', outcome: 'accepted', resend_of: first, sent_by: sentBy },
    })
    expect(answer.body).toMatchObject({ request_body: PAYLOAD, run_id: runId, session_id: sessionId })
    const [request, ...others] = dispatcher.endpoint.requests
    expect(others).toEqual([])
    expect(request?.json).toEqual(PAYLOAD)
    expect(checkServiceToken(request?.headers['x-service-token'], 'the second secret')).toMatchObject({ ok: true })
    expect((await dispatcher.readLog(source)).slice(0, 2)).toEqual([
      answer.body,
      expect.objectContaining({ id: first, outcome: 'rejected', resend_of: null, sent_by: null }),
    ])
  })

  test('happens once for an id, however often it is requested, also after the earlier delivery was deleted', async () => {
    const [first, id] = [await sendRejected(), newId()]
    const answers = await Promise.all([resend(id, first), resend(id, first), resend(id, first)])
    await dispatcher.db.prisma.delivery.delete({ where: { id: first } })
    answers.push(await resend(id, first))
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(answers[0]?.body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('of a delivery that was sent again is possible', async () => {
    const [first, second, third] = [await sendRejected(), newId(), newId()]
    await resend(second, first)
    expect((await resend(third, second)).body).toMatchObject({ outcome: 'accepted', resend_of: second })
  })

  test('is invalid when the payload does not follow the current example', async () => {
    const source = await dispatcher.saveSource()
    const first = await sendRejected({ source_id: source })
    await dispatcher.saveSource({ example_request_body: { order: 'A-1' } }, 'never', source)
    expect((await resend(newId(), first)).body).toMatchObject({ outcome: 'invalid', mismatches: expect.anything() })
    expect(dispatcher.endpoint.requests).toEqual([])
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

  test('for a suspended organization', async () => {
    const first = await sendRejected()
    const where = { id: dispatcher.organizationId }
    await dispatcher.db.prisma.organization.update({ where, data: { isSuspended: true } })
    const id = newId()
    expect(code(await resend(id, first))).toEqual([403, 'organization_suspended'])
    expect(await dispatcher.isRecorded(id)).toBe(false)
    await dispatcher.db.prisma.organization.update({ where, data: { isSuspended: false } })
    expect((await resend(id, first)).body.outcome).toBe('accepted')
  })

  test.each([
    ['payload', { payload: PAYLOAD }],
    ['run_id', { run_id: newId() }],
    ['lease', { lease: { session_id: newId(), epoch: 1 } }],
  ])('with %s too', async (field, change) => {
    const answer = await resend(newId(), newId(), change)
    expect(answer.body.error.details).toEqual([expect.objectContaining({ field, code: 'extra_forbidden' })])
  })

  test('and a body with neither payload nor resend_of lacks both fields of a new payload', async () => {
    const body = { organization_id: dispatcher.organizationId }
    const answer = await dispatcher.call('PUT', `/internal/deliveries/${newId()}`, body)
    expect(answer.body.error.details.map(({ field, code: found }) => [field, found])).toEqual([
      ['source_id', 'missing'],
      ['payload', 'missing'],
    ])
  })
})
