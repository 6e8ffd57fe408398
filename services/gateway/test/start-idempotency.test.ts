import { beforeAll, describe, expect, test } from '@jest/globals'
import { deleteOldIdempotencyKeys, newId } from '@workflow-service/database'
import type { StartedProcess } from '@workflow-service/testkit'
import { callGateway } from './support/call.ts'
import { startableWorkflow, startGatewayProcess } from './support/test-gateway.ts'
import { useTestGateway } from './support/use-test-gateway.ts'

const gateway = useTestGateway()
let workflowId: string

beforeAll(async () => {
  const workflow = startableWorkflow()
  workflowId = String(workflow['id'])
  await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
})

const withKey = (key: string) => ({ headers: { 'Idempotency-Key': key } })
const countStarts = async (context: string): Promise<number> => {
  const { rowCount } = await gateway.db.pool.query('SELECT FROM starts WHERE context = $1', [context])
  return rowCount ?? 0
}

describe('Idempotency-Key', () => {
  test('answers the same 202 to the same key and body, and starts nothing', async () => {
    const key = newId()
    const first = await gateway.start(workflowId, { context: key }, withKey(key))
    const publishedBefore = gateway.published.length
    const again = await gateway.start(workflowId, { context: key }, withKey(key))
    expect([again.status, again.body]).toEqual([202, first.body])
    expect(await countStarts(key)).toBe(1)
    expect(gateway.published).toHaveLength(publishedBefore)
  })

  test('compares the values of bodies, not their text', async () => {
    const key = newId()
    const first = await gateway.start(workflowId, `{"context":"${key}"}`, withKey(key))
    const again = await gateway.start(
      workflowId.toUpperCase(),
      `{ "session_id": null, "context": " ${key}\\n" }`,
      withKey(key),
    )
    expect(again.body).toEqual(first.body)
  })

  test.each([
    ['another context', (key: string) => ({ context: `${key} more` })],
    ['another session', (key: string) => ({ context: key, session_id: newId() })],
  ])('answers 409 to the same key with %s', async (_what, change) => {
    const key = newId()
    await gateway.start(workflowId, { context: key }, withKey(key))
    const other = await gateway.start(workflowId, change(key), withKey(key))
    expect([other.status, other.body.error.code]).toEqual([409, 'idempotency_conflict'])
  })

  test('answers 409 to the same key and body for another workflow', async () => {
    const [key, other] = [newId(), startableWorkflow({ name: 'Other' })]
    await gateway.apply({ workflows: [other] }, gateway.organization.id)
    await gateway.start(workflowId, { context: key }, withKey(key))
    const answer = await gateway.start(String(other['id']), { context: key }, withKey(key))
    expect(answer.body.error.code).toBe('idempotency_conflict')
  })

  test('gives 50 concurrent requests on two gateways one start and the same answer', async () => {
    const other = await gateway.startAnother()
    for (let round = 0; round < 5; round += 1) {
      const key = newId()
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          gateway.start(workflowId, { context: key }, { ...withKey(key), url: index % 2 ? other.url : undefined }),
        ),
      )
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
      expect(answers[0]?.status).toBe(202)
      expect(await countStarts(key)).toBe(1)
    }
  })

  test('accepts one of 50 concurrent requests with different bodies, and answers 409 to the others', async () => {
    const [key, other] = [newId(), await gateway.startAnother()]
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        gateway.start(
          workflowId,
          { context: `${key} ${index}` },
          { ...withKey(key), url: index % 2 ? other.url : undefined },
        ),
      ),
    )
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49)
  })

  test('waits for the first request with the key to commit, and answers the same', async () => {
    const [key, sessionId] = [newId(), newId()]
    await gateway.apply({ sessions: [{ id: sessionId, open: true }] }, gateway.organization.id)
    const other = await gateway.startAnother()
    const client = await gateway.db.pool.connect()
    await client.query('BEGIN')
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [sessionId])
    const body = { context: key, session_id: sessionId }
    const concurrent = Promise.all([
      gateway.start(workflowId, body, withKey(key)),
      gateway.start(workflowId, body, { ...withKey(key), url: other.url }),
      gateway.start(workflowId, body, withKey(key)),
    ])
    await client.query('COMMIT')
    client.release()
    const answers = await concurrent
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(await countStarts(key)).toBe(1)
  })

  test('answers the same after the gateway was killed and started again', async () => {
    const key = newId()
    const call = { key: gateway.organization.key, body: { context: key }, ...withKey(key) }
    const path = `/v1/workflows/${workflowId}/start`
    const texts: string[] = []
    for (let round = 0; round < 2; round += 1) {
      const started: StartedProcess & { url: string } = await startGatewayProcess(gateway.database.url)
      texts.push((await callGateway(started.url, 'POST', path, call)).text)
      started.kill('SIGKILL')
      await started.exited
    }
    expect(texts[0]).toBe(texts[1])
    expect(await countStarts(key)).toBe(1)
  }, 60_000)

  test('answers the same 202 when the workflow has become inactive since', async () => {
    const [key, workflow] = [newId(), startableWorkflow({ name: 'Soon inactive' })]
    const id = String(workflow['id'])
    await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
    const first = await gateway.start(id, { context: key }, withKey(key))
    await gateway.apply({ workflows: [{ ...workflow, is_active: false }] }, gateway.organization.id)
    expect((await gateway.start(id, { context: key }, withKey(key))).body).toEqual(first.body)
  })

  test('can be used again after a refused start', async () => {
    const [key, workflow] = [newId(), startableWorkflow({ name: 'Soon active', is_active: false })]
    const id = String(workflow['id'])
    await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
    expect((await gateway.start(id, { context: key }, withKey(key))).body.error.code).toBe('workflow_inactive')
    await gateway.apply({ workflows: [{ ...workflow, is_active: true }] }, gateway.organization.id)
    expect((await gateway.start(id, { context: key }, withKey(key))).status).toBe(202)
  })

  test('is separate for each API key of the organization', async () => {
    const key = newId()
    const other = await gateway.apply({}, gateway.organization.id)
    const first = await gateway.start(workflowId, { context: key }, withKey(key))
    const second = await gateway.start(workflowId, { context: key }, { ...withKey(key), key: other.key })
    expect(second.status).toBe(202)
    expect(second.body.id).not.toBe(first.body.id)
  })

  test('is kept for 24 hours', async () => {
    const key = newId()
    const age = (interval: string) =>
      gateway.db.pool.query(`UPDATE idempotency_keys SET created_at = now() - $2::interval WHERE key = $1`, [
        key,
        interval,
      ])
    const first = await gateway.start(workflowId, { context: key }, withKey(key))
    await age('23 hours 59 minutes')
    expect(await deleteOldIdempotencyKeys(gateway.db, 100)).toBe(0)
    expect((await gateway.start(workflowId, { context: key }, withKey(key))).body).toEqual(first.body)
    await age('24 hours 1 second')
    const later = await gateway.start(workflowId, { context: key }, withKey(key))
    expect(later.body.id).not.toBe(first.body.id)
    await age('24 hours 1 second')
    expect(await deleteOldIdempotencyKeys(gateway.db, 100)).toBe(1)
    expect(await countStarts(key)).toBe(2)
  })

  test.each([
    ['', 'string_too_short'],
    ['x'.repeat(256), 'string_too_long'],
  ])('is refused when it is %j', async (key, code) => {
    const answer = await gateway.start(workflowId, { context: 'go' }, withKey(key))
    expect([answer.status, answer.violations]).toEqual([422, [['Idempotency-Key', code]]])
  })

  test('accepts 255 characters of any kind that a header may contain', async () => {
    const key = `"${newId()}"; \t ${'x'.repeat(255)}`.slice(0, 255)
    const first = await gateway.start(workflowId, { context: key }, withKey(key))
    expect((await gateway.start(workflowId, { context: key }, withKey(key))).body).toEqual(first.body)
  })

  test('is ignored by the other operations', async () => {
    expect((await gateway.get('/v1/organization', withKey('x'.repeat(300)))).status).toBe(200)
  })
})
