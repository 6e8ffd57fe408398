import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { migrate, newId } from '@workflow-service/database'
import type { SessionQueue } from '@workflow-service/messaging'
import { openConnection, type PrivatePostgres, startPostgres, waitUntil } from '@workflow-service/testkit'
import {
  startableWorkflow,
  startGatewayProcess,
  startTestGateway,
  type TestGateway,
  useTestGateway,
} from './support/test-gateway.ts'

/** The head of a start whose body has two bytes. */
const headOf = (gateway: TestGateway, lines = '') =>
  `POST /v1/workflows/x/start HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.organization.key}\r\n` +
  `Content-Length: 2\r\n${lines}\r\n`
const readiness = async (metricsUrl: string): Promise<number> => (await fetch(`${metricsUrl}/readyz`)).status

describe('while the database is unavailable', () => {
  let postgres: PrivatePostgres
  let gateway: TestGateway
  let workflowId: string

  beforeAll(async () => {
    postgres = await startPostgres()
    await migrate({ databaseUrl: postgres.url })
    gateway = await startTestGateway({}, { databaseUrl: postgres.url })
    const workflow = startableWorkflow()
    workflowId = workflow.id
    await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
  })

  afterAll(async () => {
    thaw()
    await gateway.stop()
    await postgres.stop()
  })

  test.each([
    ['killed', () => postgres.kill()],
    ['frozen', freeze],
  ])(
    '%s: requests that need it are answered 503 within 5 s, and succeed once it is back, also of a gateway that starts then',
    async (_how, breakDatabase) => {
      expect((await gateway.get('/v1/workflows')).status).toBe(200)
      await breakDatabase()
      const late = await gateway.startAnother()
      const startedAt = performance.now()
      const responses = await Promise.all([
        gateway.get('/v1/workflows'),
        gateway.get(`/v1/workflows/${workflowId}`),
        gateway.start(workflowId, { context: 'go' }),
        gateway.start(workflowId, { context: 'go' }, { headers: { 'Idempotency-Key': newId() } }),
        gateway.get('/v1/organization', { url: late.url }),
      ])
      const tookMs = performance.now() - startedAt
      expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 503))
      expect(responses.map(({ body }) => body.error.code)).toEqual(responses.map(() => 'service_unavailable'))
      expect(tookMs).toBeLessThan(5_500)
      expect(await readiness(gateway.metricsUrl)).toBe(503)
      expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
      expect((await gateway.get('/nowhere', { key: 'malformed' })).status).toBe(401)
      await waitUntil(async () => (await gateway.get('/v1/organization')).status === 503, { timeoutMs: 10_000 })
      // Also a request whose key cannot be read counts as one of its operation: alerts look at the starts.
      const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      expect(metrics).toContain('_count{service="gateway",operation="getOrganization",status="503"}')
      // The error of the database, not the response that it causes.
      expect(JSON.stringify(gateway.logLines)).not.toContain('"name":"ApiError"')
      thaw()
      await postgres.restart()
      await waitUntil(async () => (await gateway.start(workflowId, { context: 'go' })).status === 202, {
        timeoutMs: 20_000,
      })
      expect(await readiness(gateway.metricsUrl)).toBe(200)
      await waitUntil(async () => (await gateway.get('/v1/organization', { url: late.url })).status === 200)
    },
  )

  test('a start that was answered 503 while it was queued is never recorded', async () => {
    const [sent, queued] = [newId(), newId()]
    const first: ReturnType<typeof gateway.start>[] = []
    // A key that was just looked up stays in the cache for 3 s without the database: on a slow machine, too short.
    const fillBatches = async () => {
      thaw()
      await Promise.all(first.splice(0))
      const lookUpsBefore = await countLookUps()
      await waitUntil(async () => {
        expect((await gateway.get('/v1/organization')).status).toBe(200)
        return (await countLookUps()) > lookUpsBefore
      })
      const batchesBefore = await countBatches()
      await freeze()
      // Fills both batches that may be under way; whether PostgreSQL records those is unknown.
      for (const count of [1, 2]) {
        first.push(gateway.start(workflowId, { context: sent }))
        await waitUntil(async () => (await countBatches()) >= batchesBefore + count, { timeoutMs: 3_000 })
      }
      return true
    }
    await waitUntil(fillBatches, { timeoutMs: 60_000 })
    const rest = Array.from({ length: 20 }, () => gateway.start(workflowId, { context: queued }))
    const responses = await Promise.all([...first, ...rest])
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([503]))
    thaw()
    await waitUntil(async () => (await gateway.start(workflowId, { context: 'after' })).status === 202, {
      timeoutMs: 20_000,
    })
    const { rowCount } = await gateway.db.pool.query('SELECT FROM starts WHERE context = $1', [queued])
    expect(rowCount).toBe(0)
  })

  const countBatches = () => gateway.metric('gateway_start_batch_size_count')
  const countLookUps = () => gateway.metric('gateway_key_look_ups_total')

  let frozen: number[] = []

  /** Stops every process of the server: connections stay open and nothing is answered. */
  async function freeze(): Promise<void> {
    const { rows } = await gateway.db.pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    )
    // The postmaster first: it would start new processes.
    frozen = [postgres.pid, ...rows.map(({ pid }) => pid)]
    for (const pid of frozen) process.kill(pid, 'SIGSTOP')
  }

  function thaw(): void {
    for (const pid of frozen.splice(0)) {
      try {
        process.kill(pid, 'SIGCONT')
      } catch {
        // It has ended meanwhile.
      }
    }
  }
})

test('while the broker fails or hangs, starts are recorded and answered 202, and the gateway stays ready', async () => {
  const outages: SessionQueue['publish'][] = [async () => 'failed', () => new Promise(() => {})]
  const gateway = await startTestGateway(
    {},
    {
      sessionQueue: {
        publish: async (...message) => await outages.shift()!(...message),
        consume: async () => ({ close: async () => {} }),
        depth: async () => ({ ready: 0, dead: 0 }),
        deadLetters: async () => [],
        ping: () => Promise.reject(new Error('no broker')),
        close: async () => {},
      },
    },
  )
  const workflow = await gateway.createWorkflow()
  for (let start = 0; start < 2; start += 1) {
    const { status, body } = await gateway.start(workflow.id, { context: 'go' })
    expect(status).toBe(202)
    const { rowCount } = await gateway.db.pool.query('SELECT FROM starts WHERE id = $1', [body.id])
    expect(rowCount).toBe(1)
  }
  expect(outages).toEqual([])
  const ready = await fetch(`${gateway.metricsUrl}/readyz`)
  const checks = { postgres: 'ok', rabbitmq: 'failed' }
  expect([ready.status, await ready.json()]).toEqual([200, { status: 'ok', checks }])
  await gateway.stop()
})

describe('a gateway', () => {
  const gateway = useTestGateway()

  test('with all requests in flight answers 503 to one more body of an organization that holds half of them, and to no other', async () => {
    const { url } = await gateway.startAnother({ maxRequestsInFlight: 4 })
    const other = await gateway.apply({})
    const { key: anotherKey } = await gateway.issueKey({ scopes: ['start'] })
    const start = (key: string) => gateway.start('x', { context: 'x' }, { url, key })
    const waiting = await Promise.all([openConnection(url), openConnection(url)])
    for (const connection of waiting) connection.write(headOf(gateway, 'Connection: close\r\n'))
    await waitUntil(async () => (await start(gateway.organization.key)).status === 503)
    expect((await start(anotherKey)).status).toBe(503)
    expect((await gateway.get('/v1/organization', { url })).status).toBe(200)
    expect((await start(other.key)).status).toBe(422)
    for (const connection of waiting) connection.write('{}')
    for (const { ended } of waiting) expect(await ended).toMatch(/^HTTP\/1\.1 400 /)
    await waitUntil(async () => (await start(gateway.organization.key)).status === 422)
  })

  test('that stops answers requests in flight, closes connections, accepts no new ones, and exits with 0', async () => {
    const started = await startGatewayProcess(gateway.database.url)
    const open = await openConnection(started.url)
    open.write(headOf(gateway, 'Content-Type: application/json\r\n'))
    const idle = await openConnection(started.url)
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await waitUntil(async () => (await fetch(`${started.metricsUrl}/healthz`)).ok)
    started.kill('SIGTERM')
    await waitUntil(() => started.jsonLines.some(({ msg }) => msg === 'service.stopping'))
    await idle.ended
    await waitUntil(async () => await isRefused(started.url))
    open.write('{}')
    const received = await open.ended
    expect(received).toMatch(/^HTTP\/1\.1 422 /)
    expect(received).toMatch(/\r\nConnection: close\r\n/)
    expect(await started.exited).toEqual({ code: 0, signal: null })
    expect(started.jsonLines.at(-1)?.['msg']).toBe('service.stopped')
  })
})

async function isRefused(url: string): Promise<boolean> {
  try {
    const { socket } = await openConnection(url)
    socket.destroy()
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  }
}
