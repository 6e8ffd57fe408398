import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { beforeEach, describe, expect, jest, test } from '@jest/globals'
import express, { type Express } from 'express'
import request from 'supertest'
import { createLogger } from '../logger.ts'
import { Registry } from '../metrics.ts'
import { ApiError, handleErrors } from './errors.ts'
import type { Rule } from './check-request.ts'
import { type OperationsOptions, serveOperations } from './operations.ts'
import { assignRequestId } from './request-id.ts'
import type { RequestSlotsOptions } from './request-slots.ts'
import { type HttpServer, startHttpServer } from './server.ts'
import { Type } from '@workflow-service/contract/type'

const id = '01890a5d-ac96-774b-bcce-b302099a8057'
const OPERATIONS = {
  getThing: {
    id: 'getThing',
    method: 'get',
    path: '/things/{thing_id}',
    params: Type.Object({ thing_id: Type.String({ format: 'uuid' }) }),
    query: Type.Object({
      name: Type.Optional(Type.String({ maxLength: 5 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 25 })),
    }),
    headers: Type.Object({ 'X-Mode': Type.Optional(Type.String({ minLength: 2 })) }),
  },
  saveThing: {
    id: 'saveThing',
    method: 'put',
    path: '/things/{thing_id}',
    params: Type.Object({ thing_id: Type.String({ format: 'uuid' }) }),
    body: Type.Object(
      { name: Type.String({ minLength: 1, format: 'name' }), size: Type.Optional(Type.Integer()) },
      { additionalProperties: false },
    ),
    success: { status: 202 },
  },
} as const
type Options = OperationsOptions<typeof OPERATIONS, string>

const logger = createLogger({ service: 'test', level: 'silent' })
const authorize: Options['authorize'] = (req) => {
  if (req.headers.authorization === undefined) throw new ApiError('unauthorized', 'Send a key.')
  return 'ada'
}
const handlers: Options['handlers'] = {
  getThing: ({ params, query, headers, principal }) => JSON.stringify({ params, query, headers, principal }),
  saveThing: async ({ body, bodyText }) => JSON.stringify({ body, bodyText }),
}

const bodyLimits = () => ({ maxBytes: 1_000 })

function serve(options: Partial<Options> = {}, log = logger): Express {
  const slots = { total: 1_000, perKey: 1_000, keyOf: String, metrics: new Registry() }
  const operations = serveOperations({ operations: OPERATIONS, handlers, authorize, bodyLimits, slots, ...options })
  return express().use(assignRequestId, operations, handleErrors(log))
}

async function call(
  method: 'get' | 'put',
  path: string,
  { app = serve(), body, headers = {} }: { app?: Express; body?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; body: Record<string, unknown>; violations: [field: string, code: string][] }> {
  const sending = request(app)[method](path).set('Authorization', 'x').set(headers)
  const response = await (body === undefined ? sending : sending.set('Content-Type', 'application/json').send(body))
  const { error } = response.body as { error?: { details?: { field: string; code: string }[] } }
  const violations = (error?.details ?? []).map(({ field, code }): [string, string] => [field, code])
  return { status: response.status, body: response.body as Record<string, unknown>, violations }
}

/** The Content-Security-Policy of a response. */
async function policyOf(options: Partial<Options>): Promise<string | undefined> {
  const response = await request(serve(options)).put(`/things/${id}`).set('Authorization', 'x').send({ name: 'x' })
  expect(response.status).toBe(202)
  return response.headers['content-security-policy']
}

/** The principal is the Authorization header. */
const byName: Options['authorize'] = (req) => String(req.headers.authorization)
const statusOf = async (app: Express, name: string): Promise<number> =>
  (await request(app).get(`/things/${id}`).set('Authorization', name)).status

/** Sends the head of a request of ada on a connection of its own; `status` resolves when it is closed. */
function beginPut({ port }: HttpServer, length: number): { socket: Socket; status: Promise<string> } {
  const socket = connect({ host: '127.0.0.1', port })
  let received = ''
  socket.setEncoding('utf8').on('data', (text: string) => (received += text))
  socket.write(
    `PUT /things/${id} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n` +
      'Authorization: ada\r\nConnection: close\r\n\r\n',
  )
  return { socket, status: once(socket, 'close').then(() => received.slice(9, 12)) }
}

describe('serveOperations', () => {
  test('gives the handler the checked parts: UUIDs in lower case, integers, defaults, and the principal', async () => {
    const response = await call('get', `/things/${id.toUpperCase()}?name=a+b%2B&unknown=1`, {
      headers: { 'X-Mode': 'on' },
    })
    const parts = { params: { thing_id: id }, query: { name: 'a b+', limit: 25 }, headers: { 'X-Mode': 'on' } }
    expect(response).toMatchObject({ status: 200, body: { ...parts, principal: 'ada' } })
  })

  test('has headers for browsers in its responses, unless only our own services call it', async () => {
    expect(await policyOf({})).toContain("default-src 'none'")
    expect(await policyOf({ isInternal: true })).toBeUndefined()
  })

  test('cannot be mounted without an authorization', () => {
    // @ts-expect-error `authorize` is missing.
    const options: Options = { operations: OPERATIONS, handlers, bodyLimits, slots: {} as Options['slots'] }
    expect(options).not.toHaveProperty('authorize')
  })

  test('applies the rules of an operation to its valid fields, in the order of the schema', async () => {
    const seen: unknown[] = []
    const rule: Rule<unknown, string> = (valid, { principal, bodyText }) => {
      seen.push([valid, principal, bodyText])
      return [{ field: 'name', code: 'not_free', message: 'is taken' }]
    }
    const app = serve({ rules: { saveThing: { body: rule } } })
    const body = '{"name":"x","size":"1"}'
    const response = await call('put', `/things/${id}`, { app, body })
    expect(response.violations).toEqual([
      ['name', 'not_free'],
      ['size', 'int_type'],
    ])
    expect(seen).toEqual([[{ name: 'x' }, 'ada', body]])
  })

  test('other requests are answered while a long response is made and while it is written', async () => {
    const text = 'ä'.repeat(150_000)
    const events: string[] = []
    const note = (event: string) => (events.push(event), setImmediate(() => events.push('turn')))
    const element = { toJSON: () => (note('element'), text) }
    const app = express().use((_req, res, next) => {
      const write = res.write.bind(res) as (chunk: unknown) => boolean
      jest.spyOn(res, 'write').mockImplementation((chunk: unknown) => (note('bytes'), write(chunk)))
      next()
    })
    const body = { none: undefined, list: [element, element, undefined], date: new Date(0) }
    app.use(serve({ handlers: { ...handlers, getThing: () => ({ body }) } }))
    const read = (await call('get', `/things/${id}`, { app })).body
    expect(read).toEqual({ list: [text, text, null], date: '1970-01-01T00:00:00.000Z' })
    expect(events).toEqual(['element', 'element', 'bytes', 'bytes'].flatMap((event) => [event, 'turn']))
  })

  test('authorizes again when the body has arrived, and gives the handler the principal of that moment', async () => {
    let access = 'ada, admin'
    const served: string[] = []
    const saveThing: Options['handlers']['saveThing'] = ({ principal }) => (served.push(principal), '{}')
    const authorizeNow = () => {
      if (access === '') throw new ApiError('unauthorized', 'Sign in first.')
      return access
    }
    const app = serve({ authorize: authorizeNow, handlers: { ...handlers, saveThing } })
    const server = await startHttpServer(app, { host: '127.0.0.1', port: 0 })
    const statusWhen = async (changed: string): Promise<string> => {
      access = 'ada, admin'
      const { socket, status } = beginPut(server, 12)
      while (server.inFlight === 0) await nextTurn()
      access = changed
      socket.write('{"name":"x"}')
      return await status
    }
    expect([await statusWhen('ada, member'), await statusWhen('')]).toEqual(['202', '401'])
    expect(served).toEqual(['ada, member'])
    await server.close()
  })

  test.each([
    [999, 200],
    [1_000, 401],
  ])('a caller who loses access while the request waits %i ms for its turn is answered %i', async (ms, status) => {
    let hasAccess = true
    const authorizeNow = () => {
      if (!hasAccess) throw new ApiError('unauthorized', 'Sign in first.')
      return 'ada'
    }
    const now = jest.spyOn(performance, 'now').mockReturnValue(0)
    const run: NonNullable<Options['shares']>['run'] = async (_id, _caller, _target, respond) => {
      hasAccess = false
      now.mockReturnValue(ms)
      await respond()
    }
    const app = serve({ authorize: authorizeNow, shares: { admit: () => undefined, run } })
    const response = await call('get', `/things/${id}`, { app })
    now.mockRestore()
    expect(response.status).toBe(status)
  })

  test('reads no body before the shares admit the request, and calls them and the handler back after the response', async () => {
    const events: string[] = []
    const shares: Options['shares'] = {
      admit: async () => {
        await nextTurn()
        events.push('admitted')
        return () => events.push('released')
      },
      run: async (_id, _caller, target, respond) => {
        events.push(target)
        await respond()
      },
    }
    const app = express().use((req, res, next) => {
      req.once('resume', () => events.push('read'))
      res.once('finish', () => events.push('answered'))
      next()
    })
    const saveThing: Options['handlers']['saveThing'] = async ({ onceAnswered }) => {
      onceAnswered(() => events.push('called back'))
      return '{}'
    }
    app.use(serve({ shares, handlers: { ...handlers, saveThing } }))
    expect((await call('put', `/things/${id}`, { app, body: '{"name":"x"}' })).status).toBe(202)
    while (events.length < 6) await nextTurn()
    expect(events).toEqual(['admitted', 'read', `/things/${id}`, 'answered', 'released', 'called back'])
  })

  describe('with slots', () => {
    const share = { total: 3, perKey: 2, keyOf: (principal: string) => principal }
    let limits: RequestSlotsOptions<string>
    beforeEach(() => {
      limits = { ...share, metrics: new Registry() }
    })

    test('logs a request without a free slot in one short line, as there may be thousands of them', async () => {
      const lines: string[] = []
      const log = createLogger({ service: 'test', level: 'warn', destination: { write: (line) => lines.push(line) } })
      expect(await statusOf(serve({ slots: { ...limits, total: 0 } }, log), 'ada')).toBe(503)
      expect(lines.map((line) => (JSON.parse(line) as { error: object }).error)).toEqual([
        { message: 'Too many requests are under way; try again in a moment.' },
      ])
    })

    test('bodies that do not arrive take no slot from other requests, and at most their share of the bodies', async () => {
      const arrived: unknown[] = []
      const app = express().use((req, _res, next) => {
        arrived.push(req)
        next()
      })
      app.use(serve({ authorize: byName, slots: limits }))
      const server = await startHttpServer(app, { host: '127.0.0.1', port: 0 })
      const slow = Array.from({ length: 4 }, () => beginPut(server, 14))
      while (arrived.length < 4) await nextTurn()
      const get = (name: string) => fetch(`${server.url}/things/${id}`, { headers: { authorization: name } })
      expect([(await get('ada')).status, (await get('bob')).status]).toEqual([200, 200])
      const put = await request(server.url).put(`/things/${id}`).set('Authorization', 'bob').send({ name: 'bob' })
      expect(put.status).toBe(202)
      expect(server.inFlight).toBe(2)
      for (const { socket } of slow) socket.write('{"name":"ada"}')
      expect((await Promise.all(slow.map(({ status }) => status))).toSorted()).toEqual(['202', '202', '503', '503'])
      await server.close()
    })

    test.each<[string, (socket: Socket, server: HttpServer) => unknown]>([
      ['closed by its caller', (socket) => socket.end()],
      ['reset by its caller', (socket) => socket.resetAndDestroy()],
      ['refused because the body is malformed', (socket) => socket.write('zz\r\n')],
      ['refused because the body took too long', () => {}],
      ['closed by a stop', (_socket, server) => server.close(0)],
    ])('frees the slot of a body when its connection is %s', async (how, end) => {
      const requestTimeoutMs = how.endsWith('too long') ? 100 : 60_000
      const app = serve({ slots: limits })
      const server = await startHttpServer(app, { host: '127.0.0.1', port: 0, headersTimeoutMs: 50, requestTimeoutMs })
      const socket = connect({ host: '127.0.0.1', port: server.port }).on('error', () => {})
      socket.write(
        `PUT /things/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: ada\r\nContent-Type: application/json\r\n` +
          'Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n',
      )
      const slotsInUse = async () => (await limits.metrics.getMetricsAsJSON())[0]?.values.map(({ value }) => value)
      while (!isDeepStrictEqual(await slotsInUse(), [1, 0])) await nextTurn()
      await end(socket, server)
      while (!isDeepStrictEqual(await slotsInUse(), [0, 0])) await nextTurn()
      expect(server.inFlight).toBe(0)
      socket.destroy()
      await server.close(0)
    })

    test('keeps the slot of a caller that disconnected until its handler has ended', async () => {
      const gate = Promise.withResolvers<string>()
      const started: unknown[] = []
      const getThing: Options['handlers']['getThing'] = (given) => (started.push(given), gate.promise)
      const app = serve({ slots: { ...limits, total: 1 }, handlers: { ...handlers, getThing } })
      const server = await startHttpServer(app, { host: '127.0.0.1', port: 0 })
      const get = (signal?: AbortSignal) =>
        fetch(`${server.url}/things/${id}`, { headers: { authorization: 'ada' }, signal: signal ?? null })
      const abort = new AbortController()
      const first = get(abort.signal)
      while (started.length === 0) await nextTurn()
      abort.abort()
      await expect(first).rejects.toThrow('abort')
      while (server.inFlight > 0) await nextTurn()
      expect((await get()).status).toBe(503)
      gate.resolve('{}')
      await gate.promise
      expect((await get()).status).toBe(200)
      await server.close()
    })
  })
})
