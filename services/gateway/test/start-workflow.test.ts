import { beforeAll, describe, expect, test } from '@jest/globals'
import { cancelRun, deleteOldIdempotencyKeys, deleteRun, newId, operatorOf } from '@workflow-service/database'
import { beginTransaction, countLocked, hearNotices, sendRaw, untilLocked } from '@workflow-service/testkit'
import { createStartRecorder } from '../src/starts/start-recorder.ts'
import { apiTrigger, startableWorkflow, useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway()
const LONGEST = 'x'.repeat(10_000)
const SQL = `'; DROP TABLE starts; -- {"a": "\\"}`

const createWorkflow = async (change?: object): Promise<string> => (await gateway.createWorkflow(change)).id
const createSession = async (open: boolean): Promise<string> => {
  const id = newId()
  await gateway.apply({ sessions: [{ id, open }] }, gateway.organization.id)
  return id
}
const storedStarts = async (workflowId: string): Promise<Record<string, unknown>[]> => {
  const { rows } = await gateway.db.pool.query<Record<string, unknown>>(
    'SELECT * FROM starts WHERE workflow_id = $1 ORDER BY created_at, number',
    [workflowId],
  )
  return rows
}
const codeOf = async (workflowId: string, body: unknown = { context: 'go' }): Promise<[number, string]> => {
  const response = await gateway.start(workflowId, body)
  return [response.status, response.body.error.code]
}

describe('202', () => {
  test('notifies of the new run and session', async () => {
    const workflowId = await createWorkflow()
    const start = () => gateway.start(workflowId, { context: 'go' })
    await expect(hearNotices(gateway.db, gateway.organization.id, ['runs', 'sessions'], start)).resolves.toBeUndefined()
  })

  test('records a start in a new session and notifies the runners', async () => {
    const trigger = { id: newId(), input_message: 'An order:' }
    const workflowId = await createWorkflow({ triggers: [apiTrigger(trigger)] })
    const headers = { 'X-Request-Id': 'req-1' }
    const { status, body } = await gateway.start(workflowId, { context: 'go' }, { headers })
    expect([status, body.workflow_id]).toEqual([202, workflowId])
    expect(await storedStarts(workflowId)).toEqual([
      expect.objectContaining({
        id: body.id,
        organization_id: gateway.organization.id,
        session_id: body.session_id,
        number: '1',
        origin: 'api',
        context: 'go',
        trigger_id: trigger.id,
        input_message: 'An order:',
        request_id: 'req-1',
        status: 'queued',
      }),
    ])
    expect(gateway.published.at(-1)).toEqual([{ session_id: body.session_id }, { requestId: 'req-1' }])
  })

  test('starts again in the session of an earlier response, and numbers the starts in the order accepted', async () => {
    const [workflowId, another] = [await createWorkflow(), await createWorkflow()]
    const { body } = await gateway.start(workflowId, { context: 'one' })
    const second = await gateway.start(workflowId, { context: 'two', session_id: body.session_id.toUpperCase() })
    const third = await gateway.start(another, { context: 'three', session_id: body.session_id })
    expect([second.body.session_id, third.body.session_id]).toEqual([body.session_id, body.session_id])
    expect((await storedStarts(workflowId)).map(({ number }) => number)).toEqual(['1', '2'])
    expect((await storedStarts(another)).map(({ number }) => number)).toEqual(['3'])
  })

  test('numbers 100 concurrent starts of one session without gaps or duplicates', async () => {
    const workflowId = await createWorkflow()
    const sessionId = await createSession(true)
    const other = await gateway.startAnother()
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        gateway.start(
          workflowId,
          { context: `${index}`, session_id: sessionId },
          { url: index % 2 ? other.url : undefined },
        ),
      ),
    )
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 202))
    const numbers = (await storedStarts(workflowId)).map(({ number }) => Number(number)).toSorted((a, b) => a - b)
    expect(numbers).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
    const { rows } = await gateway.db.pool.query('SELECT last_start_number FROM sessions WHERE id = $1', [sessionId])
    expect(rows).toEqual([{ last_start_number: '100' }])
  })

  test('waits on one connection for all starts of a session that another transaction has locked', async () => {
    const workflowId = await createWorkflow()
    const sessionId = await createSession(true)
    using client = await beginTransaction(gateway.db.pool)
    await client.query('SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE', [sessionId])
    const start = (context: string, key = context) =>
      gateway.start(workflowId, { context, session_id: sessionId }, { headers: { 'Idempotency-Key': key } })
    const starting = [start('a'), start('b'), start('b'), start('c', 'd'), start('d')]
    await untilLocked(gateway.db.pool, 'FROM sessions')
    // A start in another session does not wait, and comes after the others.
    expect((await gateway.start(workflowId, { context: 'go' })).status).toBe(202)
    const locked = await countLocked(gateway.db.pool)
    await client.query('COMMIT')
    const responses = await Promise.all(starting)
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 202, 202, 202, 409])
    expect(responses[2]?.body).toEqual(responses[1]?.body)
    expect(locked).toBe(1)
  })

  test('is the response to each start of a batch but the one that PostgreSQL refuses', async () => {
    const workflowId = await createWorkflow()
    const { apiKey } = await gateway.issueKey()
    await gateway.db.pool.query(`ALTER TABLE starts ADD CONSTRAINT for_test CHECK (context <> 'refused')`)
    const sizes: number[] = []
    const metrics = { starts: { inc: () => {} }, startBatches: { observe: (size: number) => void sizes.push(size) } }
    const { record } = createStartRecorder(gateway.db, metrics as never)
    const start = { workflowId, sessionId: null, apiKeyId: apiKey.id, requestId: 'r', idempotency: null }
    const outcomes = await Promise.allSettled(
      ['one', 'refused', 'two'].map((context) =>
        record(gateway.organization.id, { ...start, context, startId: newId(), newSessionId: newId() }),
      ),
    )
    await gateway.db.pool.query('ALTER TABLE starts DROP CONSTRAINT for_test')
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    const contexts = (await storedStarts(workflowId)).map(({ context }) => String(context))
    expect(contexts.toSorted()).toEqual(['one', 'two'])
    expect(sizes).toEqual([3])
  })

  test('uses the oldest active api trigger', async () => {
    const workflowId = await createWorkflow({
      triggers: [
        apiTrigger({ name: 'newer', input_message: 'newer', created_at: '2026-01-03T00:00:00Z' }),
        apiTrigger({ name: 'oldest', input_message: 'oldest', created_at: '2026-01-01T00:00:00Z', is_active: false }),
        apiTrigger({
          name: 'mail',
          trigger_source: { slug: 'mail', name: 'Mail' },
          created_at: '2026-01-01T00:00:00Z',
        }),
        apiTrigger({ name: 'old', input_message: 'old', created_at: '2026-01-02T00:00:00Z' }),
      ],
    })
    await gateway.start(workflowId, { context: 'go' })
    expect((await storedStarts(workflowId))[0]).toMatchObject({ input_message: 'old' })
  })

  test.each<[what: string, body: unknown, stored: string]>([
    ['a context of one character', { context: 'x' }, 'x'],
    ['10,000 characters outside the BMP', { context: '🚀'.repeat(10_000) }, '🚀'.repeat(10_000)],
    ['10,000 characters written as escapes', `{"context":"${'\\ud83d\\ude80'.repeat(10_000)}"}`, '🚀'.repeat(10_000)],
    ['10,000 characters between white space', { context: `${' \n'.repeat(5_000)}${LONGEST}\u0085\u2028` }, LONGEST],
    ['Unicode white space around a context', { context: '\u00a0\u3000 a b \u0085\t' }, 'a b'],
    ['text that looks like SQL', { context: SQL }, SQL],
    ['a session_id of null', { context: 'go', session_id: null }, 'go'],
    ['the last of two contexts', '{"context":"a","context":"go"}', 'go'],
    ['a body of exactly 256 KiB', `{"context":"go"}${' '.repeat(262_144 - 16)}`, 'go'],
  ])('accepts %s', async (_what, body, stored) => {
    const workflowId = await createWorkflow()
    expect((await gateway.start(workflowId, body)).status).toBe(202)
    expect((await storedStarts(workflowId))[0]?.['context']).toBe(stored)
  })
})

describe('404', () => {
  test('answers the same for a missing workflow and one of another organization, also an inactive one', async () => {
    const foreign = startableWorkflow({ is_active: false })
    await gateway.apply({ workflows: [foreign] })
    const missing = await gateway.start(newId(), { context: 'go' })
    const other = await gateway.start(foreign.id, { context: 'go' })
    expect(other.status).toBe(404)
    expect({ ...other.body.error, request_id: '' }).toEqual({ ...missing.body.error, request_id: '' })
  })

  test('comes after the fields and before the session', async () => {
    expect((await gateway.start(newId(), { context: '' })).status).toBe(422)
    expect((await gateway.start(newId(), { context: 'go', session_id: newId() })).status).toBe(404)
  })
})

describe('409', () => {
  test.each<[code: string, change: object]>([
    ['workflow_inactive', { is_active: false }],
    ['no_active_api_trigger', { triggers: [] }],
    ['no_active_api_trigger', { triggers: [apiTrigger({ is_active: false })] }],
    ['no_active_api_trigger', { triggers: [apiTrigger({ trigger_source: { slug: 'mail', name: 'api' } })] }],
    ['no_active_api_trigger', { triggers: [apiTrigger({ trigger_source: { slug: 'API', name: 'API' } })] }],
    ['no_users_with_access', { scope: 'only_me' }],
  ])('%s: %j', async (code, change) => {
    const workflowId = await createWorkflow(change)
    expect(await codeOf(workflowId)).toEqual([409, code])
    expect(await storedStarts(workflowId)).toEqual([])
  })

  test('a company_wide workflow of an organization without users', async () => {
    const userless = startableWorkflow()
    const { key } = await gateway.apply({ workflows: [userless] })
    const { body } = await gateway.start(userless.id, { context: 'go' }, { key })
    expect(body.error.code).toBe('no_users_with_access')
  })

  test('names the first reason in the order of the contract', async () => {
    const closed = { context: 'go', session_id: await createSession(false) }
    const nothing = { is_active: false, triggers: [], scope: 'only_me' }
    expect(await codeOf(await createWorkflow(nothing), closed)).toEqual([409, 'workflow_inactive'])
    expect(await codeOf(await createWorkflow({ ...nothing, is_active: true }), closed)).toEqual([
      409,
      'no_active_api_trigger',
    ])
    expect(await codeOf(await createWorkflow({ scope: 'only_me' }), closed)).toEqual([409, 'no_users_with_access'])
    expect(await codeOf(await createWorkflow(), closed)).toEqual([409, 'session_closed'])
  })

  test('the session is closed while the start waits for its row lock', async () => {
    const workflowId = await createWorkflow()
    const sessionId = await createSession(true)
    using client = await beginTransaction(gateway.db.pool)
    await client.query('UPDATE sessions SET is_open = false, closed_at = now() WHERE id = $1', [sessionId])
    const starting = codeOf(workflowId, { context: 'go', session_id: sessionId })
    // A start in another session does not wait for that lock.
    expect((await gateway.start(workflowId, { context: 'go' })).status).toBe(202)
    await client.query('COMMIT')
    expect(await starting).toEqual([409, 'session_closed'])
  })
})

describe('422', () => {
  test.each<[field: string, code: string, bodies: unknown[]]>([
    ['body', 'missing', [undefined, '', 'null']],
    ['body', 'model_attributes_type', ['[]', '"text"', '1', 'true', `${'['.repeat(100_000)}${']'.repeat(100_000)}`]],
    ['context', 'missing', [{}]],
    ['context', 'string_type', [{ context: null }, { context: 1 }, { context: ['go'] }, { context: {} }]],
    ['context', 'string_type', ['{"context":1e400}', `{"context":${'1'.repeat(90_000)}}`]],
    ['context', 'string_type', [`{"context":${'['.repeat(100_000)}${']'.repeat(100_000)}}`]],
    ['context', 'string_too_short', [{ context: '' }, { context: ' \u0085\u2003\n' }]],
    ['context', 'string_too_long', [{ context: `${LONGEST}x` }, { context: '🚀'.repeat(10_001) }]],
    ['context', 'string_unicode', [{ context: 'a\u0000b' }, '{"context":"\\ud83d"}', '{"context":"\\ude80\\ud83d"}']],
    ['session_id', 'uuid_parsing', ['', 'x'].map((id) => ({ context: 'go', session_id: id }))],
    ['session_id', 'uuid_type', [1, []].map((id) => ({ context: 'go', session_id: id }))],
    ['more', 'extra_forbidden', [{ context: 'go', more: 1 }]],
    ['__proto__', 'extra_forbidden', ['{"context":"go","__proto__":{"a":1}}']],
    ['body', 'too_many_fields', [Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`f${n}`, 1]))]],
  ])('reports %s as %s', async (field, code, bodies) => {
    for (const body of bodies) {
      const response = await gateway.start(newId(), body)
      expect([response.status, response.violations]).toEqual([422, [[field, code]]])
    }
  })

  test('reports the violations of path, header and body at once, in that order, and of the body known fields first', async () => {
    const body = { zebra: 1, session_id: 'x', context: ' ', constructor: 2 }
    const response = await gateway.start('x', body, { headers: { 'Idempotency-Key': 'x'.repeat(256) } })
    expect(response.violations).toEqual([
      ['workflow_id', 'uuid_parsing'],
      ['Idempotency-Key', 'string_too_long'],
      ['context', 'string_too_short'],
      ['session_id', 'uuid_parsing'],
      ['zebra', 'extra_forbidden'],
      ['constructor', 'extra_forbidden'],
    ])
  })

  test('the session is unknown or of another organization, open or closed', async () => {
    const [open, closed] = [newId(), newId()]
    await gateway.apply({ sessions: [open, closed].map((id) => ({ id, open: id === open })) })
    const workflowId = await createWorkflow()
    for (const sessionId of [newId(), open, closed]) {
      const response = await gateway.start(workflowId, { context: 'go', session_id: sessionId })
      expect([response.status, response.violations]).toEqual([422, [['session_id', 'not_found']]])
    }
  })
})

test.each<[what: string, body: string | Buffer, code: string, headers?: Record<string, string>]>([
  ['text that is not JSON', '{"context":', 'invalid_json'],
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'invalid_json'],
  ['a surrogate written in UTF-8', Buffer.from('{"context":"\xed\xa0\x80"}', 'latin1'), 'invalid_json'],
  ['more than 256 KiB', `{"context":"${'x'.repeat(262_144)}"}`, 'body_too_large'],
  ['JSON of another content type', '{}', 'unsupported_media_type', { 'Content-Type': 'text/plain' }],
  ['JSON of another encoding', '{}', 'unsupported_media_type', { 'Content-Encoding': 'gzip' }],
])('400 refuses %s, before the fields of the path', async (_what, body, code, headers = {}) => {
  const response = await gateway.start('x', body, { headers })
  expect([response.status, response.body.error.code]).toEqual([400, code])
})

let workflowId: string

beforeAll(async () => {
  workflowId = await createWorkflow()
})

const withKey = (key: string) => ({ headers: { 'Idempotency-Key': key } })
const countStarts = async (context: string): Promise<number> => {
  const { rowCount } = await gateway.db.pool.query('SELECT FROM starts WHERE context = $1', [context])
  return rowCount ?? 0
}

describe('Idempotency-Key', () => {
  test('answers the same 202 to the same key and body, comparing the values of bodies and not their text, and starts nothing', async () => {
    const key = newId()
    const first = await gateway.start(workflowId, `{"context":"${key}"}`, withKey(key))
    const publishedBefore = gateway.published.length
    const again = await gateway.start(
      workflowId.toUpperCase(),
      `{ "session_id": null, "context": " ${key}\\n" }`,
      withKey(key),
    )
    expect([again.status, again.body]).toEqual([202, first.body])
    expect(await countStarts(key)).toBe(1)
    expect(gateway.published).toHaveLength(publishedBefore)
  })

  test('answers 409 to the same key with another context, session or workflow', async () => {
    const key = newId()
    await gateway.start(workflowId, { context: key }, withKey(key))
    for (const other of [
      await gateway.start(workflowId, { context: `${key} more` }, withKey(key)),
      await gateway.start(workflowId, { context: key, session_id: newId() }, withKey(key)),
      await gateway.start(await createWorkflow(), { context: key }, withKey(key)),
    ]) {
      expect([other.status, other.body.error.code]).toEqual([409, 'idempotency_conflict'])
    }
  })

  test('gives 50 concurrent requests on two gateways one start, with the same response to the same body and 409 to others', async () => {
    const other = await gateway.startAnother()
    // As callers do: on a slow machine, some wait longer than a start may.
    const startUntilAnswered: typeof gateway.start = async (...start) => {
      const response = await gateway.start(...start)
      return response.status === 503 ? await startUntilAnswered(...start) : response
    }
    const race = (key: string, contextOf: (index: number) => string) =>
      Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          startUntilAnswered(
            workflowId,
            { context: contextOf(index) },
            { ...withKey(key), url: index % 2 ? other.url : undefined },
          ),
        ),
      )
    const key = newId()
    const same = await race(key, () => key)
    expect(new Set(same.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(same[0]?.status).toBe(202)
    expect(await countStarts(key)).toBe(1)
    const different = await race(newId(), String)
    expect(different.filter(({ status }) => status === 202)).toHaveLength(1)
    expect(different.filter(({ status }) => status === 409)).toHaveLength(49)
  })

  test('can be used again after a refused start, and has the same 202 when the workflow is inactive again', async () => {
    const [key, workflow] = [newId(), await gateway.createWorkflow({ is_active: false })]
    const start = () => gateway.start(workflow.id, { context: key }, withKey(key))
    const setActive = (is_active: boolean) =>
      gateway.apply({ workflows: [{ ...workflow, is_active }] }, gateway.organization.id)
    expect((await start()).body.error.code).toBe('workflow_inactive')
    await setActive(true)
    const { status, body } = await start()
    expect(status).toBe(202)
    await setActive(false)
    expect((await start()).body).toEqual(body)
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

  test('starts nothing again after the operator has deleted its run', async () => {
    const key = newId()
    const start = () => gateway.start(workflowId, { context: key }, withKey(key))
    const { body } = await start()
    const { id } = gateway.organization
    await cancelRun(gateway.db, { organizationId: id, memberId: null }, body.id, operatorOf(id))
    expect(await deleteRun(gateway.db, body.id)).toBe('deleted')
    expect(await start()).toMatchObject({ status: 202, body })
    expect(await countStarts(key)).toBe(0)
  })

  test('is refused when it is empty, or repeated; repeated headers of a trace are not', async () => {
    const { violations } = await gateway.start(workflowId, { context: 'go' }, withKey(''))
    expect(violations).toEqual([['Idempotency-Key', 'string_too_short']])
    const startWith = async (...headers: string[]) => {
      const given = [`Authorization: Bearer ${gateway.organization.key}`, 'Content-Type: application/json', ...headers]
      const head = [`POST /v1/workflows/${workflowId}/start HTTP/1.1`, 'Host: x', 'Connection: close', ...given]
      return await sendRaw(gateway.url, `${head.join('\r\n')}\r\nContent-Length: 16\r\n\r\n{"context":"go"}`)
    }
    const repeated = await startWith('Idempotency-Key: a', 'idempotency-key: a')
    expect(repeated?.status).toBe(422)
    expect(repeated?.text).toContain('Idempotency-Key must be given once')
    const ofTrace = await startWith('traceparent: x', 'traceparent: x', 'tracestate: a=1', 'tracestate: b=2')
    expect(ofTrace?.status).toBe(202)
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
