import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { afterEach, describe, expect, jest, test } from '@jest/globals'
import { ODD_ERRORS, unexpectedResponses } from '@workflow-service/testkit/start-failing-proxy'
import {
  AbortError,
  ApiError,
  type ClientOptions,
  ConnectionError,
  type Fetch,
  rateLimitOf,
  type ReceivedAnswer,
  requestIdOf,
  TimeoutError,
  WorkflowClient,
  WorkflowServiceError,
} from './index.ts'

const packageJson = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
const { version } = JSON.parse(packageJson) as { version: string }
const ID = '0e9c6a3b-2f7d-4d1e-b6c4-91d2e8f4c532'
const CONFIRMATION = { id: 'a', workflow_id: ID, session_id: 'b' }

type Sent = Parameters<Fetch>[1] & { url: string }
type Reply = { status?: number; body?: unknown; headers?: Record<string, string> } | Error | 'hang'

const accepted: Reply = { status: 202, body: CONFIRMATION }

/** A client whose requests get the replies in turn, the last one again and again. */
function clientWith(replies: Reply[], options: Partial<ClientOptions> = {}) {
  const sent: Sent[] = []
  const fetch: Fetch = (url, init) => {
    sent.push({ ...init, url })
    const reply = replies[Math.min(sent.length, replies.length) - 1]!
    if (reply instanceof Error) return Promise.reject(reply)
    // An own `fetch` may ignore its signal.
    if (reply === 'hang') return new Promise(() => {})
    const { status = 200, body = { id: ID }, headers } = reply
    return Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers }))
  }
  const client = new WorkflowClient({ apiKey: 'wfk_secret', baseUrl: 'https://api.test', fetch, ...options })
  return { client, sent, start: () => client.workflows.start(ID, { context: 'x' }) }
}

function errorReply(status: number, code: string, headers: Record<string, string> = {}, details?: object[]): Reply {
  return { status, headers, body: { error: { code, message: 'Because.', request_id: 'req-1', details } } }
}

function page(names: string[], nextCursor: string | null): Reply {
  return {
    body: {
      data: names.map((name) => ({ id: ID, name })),
      pagination: { next_cursor: nextCursor, has_more: nextCursor !== null },
    },
    headers: { 'X-Request-Id': `req-${names[0]}` },
  }
}

/** Resolves with the error of a failed call. */
async function failureOf(call: Promise<unknown>): Promise<WorkflowServiceError> {
  const outcome = await call.then(
    () => new Error('The call succeeded'),
    (error: unknown) => error,
  )
  if (!(outcome instanceof WorkflowServiceError)) throw outcome
  return outcome
}

/** Runs the call on a fake clock. Resolves with its outcome and the milliseconds that it took. */
async function onFakeClock<Value>(call: () => Promise<Value>): Promise<{ value: Value; ms: number }> {
  jest.useFakeTimers()
  const startedAt = performance.now()
  const outcome = { isSettled: false }
  const running = call().finally(() => (outcome.isSettled = true))
  while (!outcome.isSettled) await jest.advanceTimersByTimeAsync(10)
  return { value: await running, ms: performance.now() - startedAt }
}

afterEach(() => {
  jest.useRealTimers()
})

describe('a client', () => {
  test.each([
    ['no options of a setting', { apiKey: undefined, baseUrl: undefined }, 'apiKey'],
    ['an empty key', { apiKey: '' }, 'apiKey'],
    ['a key with a line end', { apiKey: 'wfk_secret\n' }, 'apiKey'],
    ['no address', { baseUrl: undefined }, 'baseUrl'],
    ['an address without scheme', { baseUrl: 'api.example.com' }, 'baseUrl'],
    ['a password in the address', { baseUrl: 'https://user:secret@api.test/' }, 'baseUrl'],
    ['a query in the address', { baseUrl: 'https://api.test/flows?a=secret' }, 'baseUrl'],
    ['half a retry', { maxRetries: 0.5 }, 'maxRetries'],
    ['no time', { timeoutMs: 0 }, 'timeoutMs'],
    ['a time that is no number', { totalTimeoutMs: NaN }, 'totalTimeoutMs'],
  ])('is refused with %s, without showing the key', (_what, options, name) => {
    const create = () => clientWith([], options)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(name)
    expect(create).not.toThrow('secret')
  })

  test('does not show its key when it is printed', () => {
    expect(inspect(clientWith([]).client, { depth: 9, showHidden: true })).not.toContain('secret')
  })

  test('appends paths with escaped ids to an address with a path and a slash at the end', async () => {
    const { client, sent } = clientWith([{ body: { id: ID, name: 'Acme' } }], { baseUrl: 'https://api.test/flows//' })
    expect(await client.organization.get()).toEqual({ id: ID, name: 'Acme' })
    expect(sent[0]).toMatchObject({ url: 'https://api.test/flows/v1/organization', method: 'GET', redirect: 'manual' })
    expect(sent[0]).not.toHaveProperty('body')
    await client.workflows.get('../a?b')
    expect(sent[1]?.url).toBe('https://api.test/flows/v1/workflows/..%2Fa%3Fb')
  })

  test('uses the global fetch by default, as it is at the time of the call', async () => {
    const client = new WorkflowClient({ apiKey: 'k', baseUrl: 'https://api.test' })
    const replaced = jest
      .spyOn(globalThis, 'fetch')
      .mockImplementation(() => Promise.resolve(Response.json({ id: ID })))
    expect(await client.organization.get()).toEqual({ id: ID })
    replaced.mockRestore()
  })

  test('sends the headers of client and call, of which none replaces the key', async () => {
    const { client, sent } = clientWith([{}], { headers: { 'X-Team': 'a', Authorization: 'none' } })
    await client.organization.get({ headers: { 'x-team': 'b' }, requestId: 'order-7' })
    expect(sent[0]?.headers).toEqual({
      accept: 'application/json',
      'user-agent': `workflow-service-client/${version}`,
      'x-team': 'b',
      authorization: 'Bearer wfk_secret',
      'x-request-id': 'order-7',
    })
  })

  test('refuses what HTTP cannot carry before it sends anything', async () => {
    const { client, sent } = clientWith([{}])
    const calls = [
      () => client.organization.get({ requestId: 'a\nb' }),
      () => client.workflows.start(ID, { context: 'x' }, { idempotencyKey: 'ключ' }),
      () => client.workflows.get(''),
      () => client.workflows.get('..'),
      () => client.workflows.get('\ud800'),
      () => client.workflows.start(undefined as never, { context: 'x' }),
      () => client.organization.get({ maxRetries: -1 }),
    ]
    for (const call of calls) await expect(call()).rejects.toMatchObject({ name: 'TypeError' })
    expect(sent).toEqual([])
  })
})

describe('a start', () => {
  test('sends context and session as JSON, and unknown fields for the service to refuse', async () => {
    const { client, sent } = clientWith([accepted])
    expect(await client.workflows.start(ID, { context: 'x' })).toEqual(CONFIRMATION)
    await client.workflows.start(ID, { context: 'x', sessionId: 's' })
    await client.workflows.start(ID, { context: 'x', session: 's' } as never)
    expect(sent[0]).toMatchObject({ url: `https://api.test/v1/workflows/${ID}/start`, method: 'POST' })
    expect(sent[0]?.headers).toMatchObject({ 'content-type': 'application/json' })
    expect(sent.map(({ body }) => JSON.parse(body ?? ''))).toEqual([
      { context: 'x' },
      { context: 'x', session_id: 's' },
      { context: 'x', session: 's' },
    ])
  })

  test('has a random Idempotency-Key, or the given one; reads have none', async () => {
    const { client, sent, start } = clientWith([accepted, accepted, accepted, {}])
    await start()
    await client.workflows.start(ID, { context: 'x' }, { idempotencyKey: null as never })
    await client.workflows.start(ID, { context: 'x' }, { idempotencyKey: 'order-7', requestId: null as never })
    await client.workflows.get(ID)
    const [first, second, third, read] = sent.map(({ headers }) => headers['idempotency-key'])
    expect(first).toMatch(/^[0-9a-f]{32}$/)
    expect(second).toMatch(/^[0-9a-f]{32}$/)
    expect(second).not.toBe(first)
    expect(sent[2]?.headers).not.toHaveProperty('x-request-id')
    expect([third, read]).toEqual(['order-7', undefined])
  })

  test('has the Idempotency-Key of the headers of its call, if the option names none', async () => {
    const { client, sent } = clientWith([accepted, accepted, errorReply(409, 'session_closed')])
    const headers = { 'Idempotency-Key': 'order-8' }
    await client.workflows.start(ID, { context: 'x' }, { headers })
    await client.workflows.start(ID, { context: 'x' }, { headers, idempotencyKey: 'order-7' })
    const error = await failureOf(client.workflows.start(ID, { context: 'x' }, { headers }))
    expect(sent.map((each) => each.headers['idempotency-key'])).toEqual(['order-8', 'order-7', 'order-8'])
    expect(error.idempotencyKey).toBe('order-8')
  })
})

describe('retries', () => {
  test.each<[string, Reply]>([
    ...[429, 500, 502, 503, 504].map((status): [string, Reply] => [String(status), errorReply(status, 'code')]),
    ['no connection', new TypeError('fetch failed')],
    ['a part of a response', new TypeError('terminated')],
    ['nothing in time', 'hang'],
  ])('repeat a call that was answered with %s, with the same headers', async (_response, reply) => {
    const { sent, start } = clientWith([reply, reply, accepted], { timeoutMs: 100 })
    expect((await onFakeClock(start)).value).toEqual(CONFIRMATION)
    expect(sent).toHaveLength(3)
    expect(sent[2]).toEqual({ ...sent[0], signal: sent[2]?.signal })
  })

  test.each([400, 401, 403, 404, 409, 422, 418, 301])(
    'do not repeat a call that was answered with %i',
    async (status) => {
      const { sent, start } = clientWith([errorReply(status, 'code', { 'Retry-After': '0' }), accepted])
      expect(await failureOf(start())).toMatchObject({ status, attempts: 1 })
      expect(sent).toHaveLength(1)
    },
  )

  test('end after maxRetries with the last error', async () => {
    const { sent, start } = clientWith([new TypeError('first'), errorReply(500, 'internal_error')], { maxRetries: 4 })
    const { value } = await onFakeClock(() => failureOf(start()))
    expect(value).toMatchObject({ status: 500, attempts: 5, idempotencyKey: sent[0]?.headers['idempotency-key'] })
    expect(sent).toHaveLength(5)
  })

  test('wait 250 to 500 ms at first, then twice as long each time, at most 4 to 8 s', async () => {
    const { client } = clientWith([new TypeError('failed')])
    for (const [random, expected] of [
      [0, 250 + 500 + 1000 + 2000 + 4000 + 4000],
      [1, 500 + 1000 + 2000 + 4000 + 8000 + 8000],
    ] as const) {
      jest.spyOn(Math, 'random').mockReturnValue(random)
      const { ms } = await onFakeClock(() => failureOf(client.organization.get({ maxRetries: 6 })))
      expect(Math.abs(ms - expected)).toBeLessThanOrEqual(100)
    }
    jest.restoreAllMocks()
  })

  test.each([
    ['seconds', () => '20', 20_000, 20_500],
    ['a date', () => new Date(Date.now() + 20_999).toUTCString(), 19_990, 21_500],
    ['a text that cannot be read, which counts as none', () => 'soon', 250, 500],
  ])('wait as Retry-After says in %s, and a random time more', async (_what, header, least, most) => {
    const { value, ms } = await onFakeClock(() =>
      clientWith([errorReply(429, 'rate_limited', { 'Retry-After': header() }), accepted]).start(),
    )
    expect(value).toEqual(CONFIRMATION)
    expect(ms).toBeGreaterThanOrEqual(least)
    expect(ms).toBeLessThanOrEqual(most + 10)
  })

  test('do not wait for a Retry-After beyond totalTimeoutMs: the error says how long it is', async () => {
    const { sent, start } = clientWith([errorReply(429, 'rate_limited', { 'Retry-After': '3600' })])
    expect(await failureOf(start())).toMatchObject({ code: 'rate_limited', retryAfterMs: 3_600_000, attempts: 1 })
    expect(sent).toHaveLength(1)
  })
})

describe('time limits', () => {
  test('end each attempt after timeoutMs, also if fetch ignores its signal', async () => {
    const { client, sent } = clientWith(['hang'])
    const call = () => failureOf(client.organization.get({ timeoutMs: 2000, maxRetries: 1 }))
    const { value, ms } = await onFakeClock(call)
    expect(value).toBeInstanceOf(TimeoutError)
    expect(value.message).toContain('timeoutMs, 2000 ms')
    expect(sent.map(({ signal }) => signal.aborted)).toEqual([true, true])
    expect(ms).toBeGreaterThanOrEqual(4240)
    expect(ms).toBeLessThan(4600)
  })

  test('end the call after totalTimeoutMs, within an attempt or before the next one', async () => {
    const { client, sent } = clientWith(['hang'])
    const long = await onFakeClock(() => failureOf(client.organization.get({ totalTimeoutMs: 20_000, maxRetries: 9 })))
    expect(long.value.message).toContain('totalTimeoutMs, 20000 ms')
    expect([long.ms, sent.length]).toEqual([20_000, 2])
    const short = await onFakeClock(() => failureOf(client.organization.get({ timeoutMs: 900, totalTimeoutMs: 1000 })))
    expect([short.ms, sent.length]).toEqual([900, 3])
  })

  test('leave a wait the time that the service waits', async () => {
    const { client } = clientWith(['hang'])
    const call = () => failureOf(client.runs.wait(ID, { timeoutMs: 2000, maxRetries: 0 }))
    expect((await onFakeClock(call)).ms).toBe(12_000)
  })

  test('are those of a whole wait, which asks once a second where it is answered at once', async () => {
    const { client, sent } = clientWith([{ body: { id: ID, status: 'queued', finished_at: null } }, 'hang'])
    const { value, ms } = await onFakeClock(() => failureOf(client.runs.wait(ID, { totalTimeoutMs: 5000 })))
    expect(value.message).toContain('(totalTimeoutMs, 5000 ms)')
    expect([ms, sent.length]).toEqual([5000, 2])
  })

  test('end a wait whose every request is answered at once, and nothing is asked after it', async () => {
    const { client, sent } = clientWith([{ body: { id: ID, status: 'queued', finished_at: null } }])
    const { value, ms } = await onFakeClock(() => failureOf(client.runs.wait(ID, { totalTimeoutMs: 2500 })))
    expect(value).toBeInstanceOf(TimeoutError)
    expect(value.message).toContain('(totalTimeoutMs, 2500 ms)')
    expect([ms, sent.length]).toEqual([2500, 3])
  })

  test('of a call go before those of the client; an infinite one never ends it', async () => {
    const { client } = clientWith(['hang'], { timeoutMs: 10, totalTimeoutMs: 10 })
    const limits = { timeoutMs: Infinity, totalTimeoutMs: Infinity }
    const signal = AbortSignal.timeout(100)
    expect(await failureOf(client.organization.get({ ...limits, signal }))).toBeInstanceOf(AbortError)
  })

  test('leave no timer and no listener behind', async () => {
    const { signal } = new AbortController()
    const [add, remove] = [jest.spyOn(signal, 'addEventListener'), jest.spyOn(signal, 'removeEventListener')]
    const { client } = clientWith([errorReply(503, 'service_unavailable', { 'Retry-After': '0' }), accepted])
    jest.useFakeTimers()
    const call = client.workflows.start(ID, { context: 'x' }, { signal })
    await jest.advanceTimersByTimeAsync(1000)
    await call
    expect(jest.getTimerCount()).toBe(0)
    expect(add.mock.calls.length).toBe(remove.mock.calls.length)
  })
})

test('an abort ends the call before, within and between attempts with the reason as its cause', async () => {
  const reason = new Error('The page was left')
  const { client, sent } = clientWith(['hang'])
  const before = await failureOf(client.organization.get({ signal: AbortSignal.abort(reason) }))
  expect([before, before.cause, sent.length]).toEqual([expect.any(AbortError), reason, 0])

  const controller = new AbortController()
  const within = failureOf(client.workflows.start(ID, { context: 'x' }, { signal: controller.signal }))
  await Promise.resolve()
  controller.abort(reason)
  expect([(await within).cause, sent.length, sent[0]?.signal.aborted]).toEqual([reason, 1, true])
  expect((await within).idempotencyKey).toBe(sent[0]?.headers['idempotency-key'])

  const failing = clientWith([errorReply(503, 'service_unavailable', { 'Retry-After': '30' })])
  const between = new AbortController()
  const waiting = failureOf(failing.client.organization.get({ signal: between.signal }))
  setTimeout(() => between.abort(reason), 20)
  expect(await waiting).toMatchObject({ name: 'AbortError', cause: reason, attempts: 1 })
})

describe('an error', () => {
  test('of the API has status, code, details and the request id, and shows them in its message', async () => {
    const details = [
      { field: 'context', code: 'string_too_short', message: 'must have at least 1 character' },
      { field: 'session_id', code: 'uuid_type', message: 'must be a UUID' },
    ]
    const message = 'context must have at least 1 character (and 1 more).'
    const { start } = clientWith([
      { status: 422, body: { error: { code: 'validation_error', message, request_id: 'req-1', details } } },
    ])
    const error = await failureOf(start())
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      name: 'ApiError',
      status: 422,
      code: 'validation_error',
      details,
      requestId: 'req-1',
    })
    expect(error.message).toBe(`422 validation_error: ${message} session_id: must be a UUID. (request req-1)`)
  })

  test('of the connection says why', async () => {
    const cause = new TypeError('fetch failed', { cause: Object.assign(new Error(''), { code: 'ECONNREFUSED' }) })
    const { client } = clientWith([cause], { maxRetries: 0 })
    const error = await failureOf(client.organization.get())
    expect(error.message).toBe('GET https://api.test/v1/organization failed: fetch failed (ECONNREFUSED)')
    expect(error.cause).toBe(cause)
    expect(error.idempotencyKey).toBeUndefined()
  })
})

describe('a list', () => {
  const pages = [page(['a', 'b'], 'c1'), page(['c'], 'c2'), page([], null)]

  test('gives a page when awaited, with the next one on request', async () => {
    const { client, sent } = clientWith(pages)
    const first = await client.workflows.list({ search: 'a b&', limit: 2, cursor: null as never })
    expect([first.data.length, first.hasNextPage(), sent.length]).toEqual([2, true, 1])
    expect(JSON.parse(JSON.stringify(first))).toEqual((pages[0] as { body: unknown }).body)
    const last = await (await first.getNextPage()).getNextPage()
    expect([last.data, last.hasNextPage()]).toEqual([[], false])
    expect([requestIdOf(first), requestIdOf(last)]).toEqual(['req-a', 'req-undefined'])
    await expect(last.getNextPage()).rejects.toThrow('hasNextPage')
    expect(sent.map(({ url }) => url.split('?')[1])).toEqual([
      'search=a+b%26&limit=2',
      'search=a+b%26&limit=2&cursor=c1',
      'search=a+b%26&limit=2&cursor=c2',
    ])
  })

  test('gives the items of all pages to for await, and reads no page ahead', async () => {
    const { client, sent } = clientWith(pages)
    const names: string[] = []
    for await (const workflow of client.workflows.list()) names.push(`${workflow.name}${sent.length}`)
    expect(names).toEqual(['a1', 'b1', 'c2'])
    expect(sent.map(({ url }) => url)).toHaveLength(3)
  })

  test('rejects within for await', async () => {
    const { client } = clientWith([pages[0]!, errorReply(422, 'validation_error')])
    const read = async () => {
      for await (const { name } of client.workflows.list()) expect(name).not.toBe('c')
    }
    expect(await failureOf(read())).toMatchObject({ code: 'validation_error' })
  })
})

describe('a response that is not of this API', () => {
  const calls: [string, (client: WorkflowClient) => Promise<unknown>, number][] = [
    ['organization.get', (client) => client.organization.get(), 200],
    ['workflows.list', (client) => client.workflows.list(), 200],
    ['workflows.get', (client) => client.workflows.get(ID), 200],
    ['workflows.start', (client) => client.workflows.start(ID, { context: 'x' }), 202],
    ['runs.get', (client) => client.runs.get(ID), 200],
    ['runs.wait', (client) => client.runs.wait(ID), 200],
    ['sessions.get', (client) => client.sessions.get(ID), 200],
  ]
  test.each(calls)('is no success of %s, and is not asked for again', async (_name, call, success) => {
    for (const [status, body] of unexpectedResponses(success, JSON.stringify(CONFIRMATION))) {
      const fetch: Fetch = () => Promise.resolve({ status, headers: new Headers(), text: () => Promise.resolve(body) })
      const { client } = clientWith([], { fetch })
      const { code, attempts, message } = (await failureOf(call(client))) as ApiError
      expect([status, body, code, attempts]).toEqual([status, body, 'unexpected_answer', 1])
      expect(message).toContain('is baseUrl right?')
    }
  })

  test.each(ODD_ERRORS)('is an error whose body is odd, which is not asked for again: %j', async (error) => {
    const { sent, start } = clientWith([{ status: 422, body: { error } }])
    expect(await failureOf(start())).toMatchObject({ name: 'ApiError', status: 422, code: 'unexpected_answer' })
    expect(sent).toHaveLength(1)
  })
})

function fail(_event: unknown): never {
  throw new Error('The log is full')
}

describe('hooks, the request id and the rate limit', () => {
  const headers = {
    'X-Request-Id': 'req-1',
    'RateLimit-Policy': '"requests";q=600;w=60',
    RateLimit: '"requests";r=599;t=30',
  }
  const rateLimit = { limit: 600, remaining: 599, resetMs: 30_000 }

  test('see each attempt, without the key and the context', async () => {
    const seen: unknown[] = []
    const { start } = clientWith(
      [errorReply(503, 'service_unavailable', { 'Retry-After': '0' }), new Error('reset'), { ...accepted, headers }],
      { onRequest: (request) => seen.push(request), onAnswer: (answer) => seen.push(answer) },
    )
    await onFakeClock(start)
    const common = { method: 'POST', url: expect.stringContaining(ID), idempotencyKey: expect.any(String) }
    const none = { status: null, requestId: null, rateLimit: null }
    expect(seen).toEqual([
      { ...common, attempt: 1 },
      { ...common, ...none, attempt: 1, ms: expect.any(Number), status: 503, error: expect.any(ApiError) },
      { ...common, attempt: 2 },
      { ...common, ...none, attempt: 2, ms: expect.any(Number), error: expect.any(ConnectionError) },
      { ...common, attempt: 3 },
      { ...common, attempt: 3, ms: expect.any(Number), status: 202, requestId: 'req-1', rateLimit, error: null },
    ])
    expect(inspect(seen, { depth: 5 })).not.toMatch(/wfk_secret|"x"/)
  })

  test('see the end of an attempt that the caller ends, and no attempt of a call that was ended before', async () => {
    const seen: unknown[] = []
    const hooks = { onRequest: () => seen.push('sent'), onAnswer: (answer: ReceivedAnswer) => seen.push(answer.error) }
    const { client } = clientWith(['hang'], hooks)
    await failureOf(client.organization.get({ signal: AbortSignal.abort() }))
    await failureOf(client.organization.get({ signal: AbortSignal.timeout(20) }))
    expect(seen).toEqual(['sent', expect.any(AbortError)])
  })

  test.each([
    ['throw', fail],
    ['reject with', (event: unknown): unknown => Promise.resolve(event).then(fail)],
  ])('do not fail a call, nor the process, by what they %s', async (_how, hook) => {
    const { start } = clientWith([accepted], { onRequest: hook, onAnswer: hook })
    expect(await start()).toEqual(CONFIRMATION)
    // A rejection that nothing handles is reported at the end of a turn, and fails the test.
    await nextTurn()
  })

  test('are those of a result, which has the documented fields only, and the limit also of an error', async () => {
    const confirmation = await clientWith([{ ...accepted, headers }]).start()
    expect(Reflect.ownKeys(confirmation)).toEqual(['id', 'workflow_id', 'session_id'])
    expect([requestIdOf(confirmation), rateLimitOf(confirmation)]).toEqual(['req-1', rateLimit])
    const failing = clientWith([errorReply(409, 'workflow_inactive', headers)])
    expect(await failureOf(failing.start())).toMatchObject({ rateLimit })
    expect(rateLimitOf(await clientWith([accepted]).start())).toBeUndefined()
    const seen: ReceivedAnswer[] = []
    const odd = { ...headers, RateLimit: 'soon' }
    await clientWith([{ ...accepted, headers: odd }], { onAnswer: (answer) => seen.push(answer) }).start()
    expect(seen[0]?.rateLimit).toBeNull()
  })
})
