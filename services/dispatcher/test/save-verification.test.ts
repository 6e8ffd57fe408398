import { describe, expect, test } from '@jest/globals'
import { newId, readRejectedAnswers } from '@workflow-service/database'
import { createCertificate, freePort, startCustomerEndpoint, startRawEndpoint } from '@workflow-service/testkit'
import { callDispatcher, sourceIn } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

/** Saves a stored and a new source, expects that both fail to verify and change nothing, and returns the error. */
async function verificationError(change: Record<string, unknown>): Promise<Record<string, unknown>> {
  const id = newId()
  const before = (await dispatcher.save(id, { name: `Before ${id}` })).body
  const answer = await dispatcher.save(id, { name: `After ${id}`, ...change })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'verification_failed' } } })
  expect((await dispatcher.readSource(id)).body).toEqual(before)
  const fresh = newId()
  expect((await dispatcher.save(fresh, change)).body.error).toMatchObject({ reason: answer.body.error.reason })
  expect((await dispatcher.readSource(fresh)).status).toBe(404)
  const [entry] = await dispatcher.readLog(fresh)
  expect(entry).toMatchObject({ kind: 'verification', source_id: fresh })
  return { ...answer.body.error, logged: entry?.outcome }
}

describe('422 verification_failed', () => {
  test.each([400, 401, 410, 503])('status %i', async (status) => {
    dispatcher.endpoint.answerWith((_request, index) => ({ status: index === 0 ? 204 : status }))
    expect(await verificationError({})).toMatchObject({
      reason: 'status',
      status,
      message: expect.stringContaining(String(status)),
      logged: 'rejected',
    })
    expect(dispatcher.endpoint.requests).toHaveLength(3)
  })

  test('a redirect is not followed; the error has its location', async () => {
    dispatcher.endpoint.answerWith((_request, index) =>
      index === 0 ? {} : { redirect: 'https://elsewhere.example/x', status: 308 },
    )
    expect(await verificationError({})).toMatchObject({
      reason: 'redirect',
      status: 308,
      location: 'https://elsewhere.example/x',
      logged: 'rejected',
    })
  })

  test('an unused port', async () => {
    const port = await freePort()
    expect(await verificationError({ endpoint_url: `http://127.0.0.1:${port}/` })).toMatchObject({
      reason: 'unreachable',
      kind: 'connection_refused',
      logged: 'unreachable',
    })
  })

  test('a connection that is reset', async () => {
    dispatcher.endpoint.answerWith((_request, index) => (index === 0 ? {} : 'reset'))
    expect(await verificationError({})).toMatchObject({ reason: 'unreachable', kind: 'connection_reset' })
  })

  test('a certificate that is not trusted; the error says why', async () => {
    const tls = await createCertificate({ names: ['127.0.0.1'] })
    const secure = await startCustomerEndpoint({ tls })
    expect(await verificationError({ endpoint_url: secure.url })).toMatchObject({
      reason: 'unreachable',
      kind: 'tls',
      tls_fault: 'self_signed',
    })
    expect(secure.requests).toHaveLength(0)
    await secure.close()
  })

  test('a secret that the endpoint repeats in its answer appears neither in the error nor in the log', async () => {
    const secret = 'echoed-secret with space'
    const echo = await startRawEndpoint((socket) => {
      const location = `https://x.example/?s=${encodeURIComponent(secret)}&t=${secret.replaceAll(' ', '%20')}`
      socket.end(`HTTP/1.1 302 Found\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
    })
    const id = newId()
    const answer = await dispatcher.save(id, { endpoint_url: echo.url, signing_secret: secret })
    expect(answer).toMatchObject({ status: 422, body: { error: { location: expect.stringContaining('[hidden]') } } })
    expect(JSON.stringify([answer.body, await dispatcher.readLog(id)])).not.toMatch(/echoed-secret/)
    await echo.close()
  })

  test('a rejection shows what the endpoint answered, without the secret', async () => {
    dispatcher.endpoint.answerWith(({ json }) => ({ status: 400, body: `not valid:\n${JSON.stringify(json)}` }))
    const saved = await dispatcher.save(newId(), { signing_secret: 'echoed-secret' })
    const { error } = saved.body
    expect(error).toMatchObject({
      reason: 'status',
      rejected_answer: expect.stringMatching(/^not valid:\n\{.*\[hidden\]/),
    })
    expect(JSON.stringify(error)).not.toContain('echoed-secret')
    const kept = await readRejectedAnswers(dispatcher.db, dispatcher.organizationId, [String(error.delivery_id)])
    expect([...kept.values()]).toEqual([error.rejected_answer])
    // Too short to be recognized in a text.
    const short = await dispatcher.save(newId(), { signing_secret: 'short' })
    expect(short.body.error.reason).toBe('status')
    expect(JSON.stringify(short.body)).not.toMatch(/short|rejected_answer/)
  })

  test('a time-out', async () => {
    // The deadline itself is tested in test/outbound.
    const late = await dispatcher.startAnother({
      sendRequest: async ({ deadlineMs }) => ({
        kind: 'timed_out',
        phase: 'answer',
        wasSent: true,
        detail: 'the endpoint took too long to answer',
        durationMs: deadlineMs,
      }),
    })
    const id = newId()
    const answer = await callDispatcher(late.url, 'PUT', dispatcher.sourcePath(id), sourceIn({}))
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: 'verification_failed', reason: 'timed_out', kind: 'answer' } },
    })
    expect(await dispatcher.readLog(id)).toEqual([
      expect.objectContaining({ outcome: 'timed_out', duration_ms: 10_000 }),
    ])
  })

  test('a name that resolves to a private address; only the log of the service has the address', async () => {
    const rebound = await dispatcher.startAnother({
      sendRequest: async () => ({
        kind: 'refused',
        code: 'url_not_public',
        address: null,
        detail: 'the address of hooks.example.com is not publicly reachable',
        internalDetail: 'hooks.example.com: 10.1.2.3 is not a public address',
        durationMs: 1,
      }),
    })
    const id = newId()
    const answer = await callDispatcher(rebound.url, 'PUT', dispatcher.sourcePath(id), sourceIn({}))
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: 'verification_failed', reason: 'url_not_public' } },
    })
    expect(answer.body.error).not.toHaveProperty('address')
    expect(JSON.stringify([answer.body, await dispatcher.readLog(id)])).not.toContain('10.1.2.3')
    expect(JSON.stringify(dispatcher.logLines)).toContain('10.1.2.3')
  })
})
