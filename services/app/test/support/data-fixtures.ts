import { randomBytes } from 'node:crypto'
import { createServer, request as httpRequest } from 'node:http'
import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import type { AppOperationId, DeliveryOut, RunStatus } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { createCapturedLogger, listen, startCustomerEndpoint } from '@workflow-service/testkit'
import { type AppCall, type Caller, INTERNAL_API_TOKEN, type TestApp, useTestApp } from './test-app.ts'

/** An application with a dispatcher and a customer's endpoint. */
export type DataApp = Awaited<ReturnType<typeof startDataApp>>

interface RunChange {
  readonly status?: RunStatus
  readonly sessionId?: string
  readonly number?: number
  readonly createdAt?: Date
  readonly requestId?: string
  readonly userId?: string
}

interface DeliveryChange {
  readonly runId?: string | null
  readonly outcome?: string
  readonly createdAt?: Date
  readonly body?: object
}

export const EXAMPLE = { order_id: 'A-1', total: 99.5 }

/** The body of a save of a source. */
export function sourceIn(change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name: `Order intake ${newId()}`,
    description: 'Takes orders.',
    endpoint_url: 'http://127.0.0.1:9/',
    signing_secret: 'a signing secret of this test, long enough',
    example_request_body: EXAMPLE,
    version: null,
    ...change,
  }
}

/** The body of a save of a look-up. */
export function lookupIn(url: string): Record<string, unknown> {
  const parameters = { type: 'object', properties: { q: { type: 'string' } } }
  return { name: `Customers ${newId()}`, kind: 'http', url, tools: [{ name: 'find', path: '/', parameters }] }
}

/** Starts a server that passes calls on, and breaks the connection instead of answering. */
export async function cutAnswers(target: string): Promise<{ url: string; close: () => void }> {
  const server = createServer((req, res) => {
    const { method = 'GET', headers } = req
    const passed = httpRequest(`${target}${req.url}`, { method, headers }, (answer) => {
      answer.resume().once('end', () => res.destroy())
    })
    req.pipe(passed)
  })
  return { url: `http://127.0.0.1:${await listen(server)}`, close: () => server.close() }
}

/** Sets up the three for the test file. The returned object is filled before the first test. */
export function useDataApp({ hasMaintenance = true } = {}): DataApp {
  const used = {} as DataApp
  const stops: (() => Promise<void>)[] = []
  // Registered before the hooks of useTestApp, so that it runs before the database is dropped.
  afterAll(async () => {
    for (const stop of stops) await stop()
  })
  const app = useTestApp()
  beforeAll(async () => void Object.assign(used, await startDataApp(app, hasMaintenance, stops)), 120_000)
  beforeEach(() => used.endpoint.reset())
  return used
}

async function startDataApp(app: TestApp, hasMaintenance: boolean, stops: (() => Promise<void>)[]) {
  /** Answers 204 at the beginning of each test. */
  const endpoint = await startCustomerEndpoint()
  stops.push(() => endpoint.close())
  const config = readDispatcherConfig({
    DATABASE_URL: app.config.databaseUrl,
    INTERNAL_API_TOKEN,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    HOST: '127.0.0.1',
    PORT: '0',
  })
  const { logger } = createCapturedLogger({ service: 'dispatcher' })
  const dispatcher = await startDispatcher(config, { logger })
  stops.unshift(() => dispatcher.stop())
  const { url } = await app.startAnother({ dispatcherUrl: dispatcher.url }, hasMaintenance)
  /** Calls the application that uses the dispatcher. */
  const call = <Id extends AppOperationId>(who: Caller, id: Id, request: AppCall = {}) =>
    app.call(who, id, { url, ...request })
  const { pool } = app.db
  return {
    app,
    endpoint,
    dispatcherUrl: dispatcher.url,
    call,
    /** Saves a source as an admin, which must succeed, and returns its id. */
    saveSource: async (change: Record<string, unknown> = {}, organization = app.organization) => {
      const id = newId()
      const body = sourceIn({ endpoint_url: endpoint.url, ...change })
      const answer = await call(organization.admin, 'saveWebhookSource', { params: { source_id: id }, body })
      if (answer.status !== 200) throw new Error(answer.text)
      endpoint.requests.length = 0
      return id
    },
    /** Sends a payload through the dispatcher. */
    send: async (sourceId: string, runId: string | null = null) => {
      const response = await fetch(`${dispatcher.url}/internal/deliveries/${newId()}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${INTERNAL_API_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          organization_id: app.organization.id,
          source_id: sourceId,
          payload: { order_id: 'B-2', total: 12 },
          run_id: runId,
        }),
      })
      return (await response.json()) as DeliveryOut
    },
    /** Inserts a workflow that everyone, or these users, see. */
    createWorkflow: async (
      name: string,
      userIds: readonly string[] | null = null,
      organizationId = app.organization.id,
    ) => {
      const id = newId()
      await pool.query(
        `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
         VALUES ($1, $2, $3, '', $4, lower($3), true)`,
        [id, organizationId, name, userIds === null ? 'company_wide' : 'only_me'],
      )
      for (const userId of userIds ?? []) {
        await pool.query('INSERT INTO workflow_users VALUES ($1, $2, $3)', [organizationId, id, userId])
      }
      return id
    },
    /** Inserts a run in a session of its own, or a given one. */
    createRun: async (workflowId: string, change: RunChange = {}) => {
      const { status = 'succeeded', number = 1, createdAt = new Date() } = change
      const { sessionId = newId(), requestId = newId() } = change
      const hasEnded = status === 'succeeded' || status === 'failed'
      const id = newId()
      await pool.query(
        `INSERT INTO sessions (id, organization_id, last_start_number, last_finished_number)
         SELECT $1, organization_id, $2, $3 FROM workflows WHERE id = $4
         ON CONFLICT (id) DO UPDATE SET last_start_number = $2, last_finished_number = $3`,
        [sessionId, number, hasEnded ? number : number - 1, workflowId],
      )
      await pool.query(
        `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status,
           attempts, error, created_at, started_at, finished_at, not_succeeded_at, user_id)
         SELECT $1, organization_id, id, $3, $4, $5, 'Order 17', $6, $7, 1, $8, $9, $10, $11, CASE WHEN $7 = 'failed' THEN $11::timestamptz END, $12
         FROM workflows WHERE id = $2`,
        [
          id,
          workflowId,
          sessionId,
          number,
          change.userId === undefined ? 'auto_run' : 'app',
          requestId,
          status,
          status === 'failed' ? 'delivery_rejected: The endpoint answered 500.' : null,
          createdAt,
          status === 'queued' ? null : createdAt,
          hasEnded ? new Date(createdAt.getTime() + 1_000) : null,
          change.userId ?? null,
        ],
      )
      return id
    },
    addSteps: async (runId: string, ...steps: (readonly [kind: string, data: object])[]) => {
      await pool.query(
        `INSERT INTO run_steps (run_id, position, kind, data, epoch)
         SELECT $1, position - 1, step ->> 0, step -> 1, 1
         FROM json_array_elements($2) WITH ORDINALITY AS s (step, position)`,
        [runId, JSON.stringify(steps)],
      )
    },
    /** Inserts a delivery of a payload, which was accepted, and returns its id. */
    addDelivery: async (sourceId: string, change: DeliveryChange = {}) => {
      const { runId = null, outcome = 'accepted', createdAt = new Date(), body = EXAMPLE } = change
      const id = newId()
      await pool.query(
        `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, run_id, created_at, finished_at)
         SELECT $1, organization_id, id, 'payload', $3, 204, $4, $5, $6, now() FROM webhook_sources WHERE id = $2`,
        [id, sourceId, outcome, JSON.stringify(body), runId, createdAt],
      )
      return id
    },
    /** Inserts a payload of the run that waits for an approval, and returns the id of its delivery. */
    createApproval: async (runId: string, change: { sourceId?: string; expiresAt?: Date } = {}) => {
      const { sourceId = newId(), expiresAt = new Date(Date.now() + 86_400_000) } = change
      const id = newId()
      await pool.query(
        `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
         SELECT $1, organization_id, id, $3, 'Order intake', $4, $5 FROM starts WHERE id = $2`,
        [id, runId, sourceId, JSON.stringify(EXAMPLE), expiresAt],
      )
      return id
    },
  }
}
