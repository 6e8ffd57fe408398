import {
  type AppErrorBody,
  type AppOperationId,
  type AppResponseBody,
  compile,
  ERROR_CODES,
  type Role,
  ROLES,
} from '@workflow-service/contract'
import { APP_OPERATIONS, AppErrorResponse } from '@workflow-service/contract/app'
import { type Database, newId } from '@workflow-service/database'
import { createInProcessQueue } from '@workflow-service/messaging'
import type { RunningService } from '@workflow-service/service-kit'
import { createCapturedLogger, createSignedInUser } from '@workflow-service/testkit'
import type { AppConfig } from '../../src/config.ts'
import { startApp } from '../../src/start-app.ts'

/** A person of a test organization who is signed in. */
export interface TestPerson {
  readonly accountId: string
  readonly userId: string
  readonly email: string
  readonly role: Role
  readonly organizationId: string
  /** The value of the session cookie. */
  readonly token: string
}

/** An organization with a person of each role. */
export interface TestOrganization extends Readonly<Record<Role, TestPerson>> {
  readonly id: string
  readonly name: string
}

/** A person, a person of `organization` by the role, a token, or (null) a stranger. */
export type Caller = TestPerson | Role | (string & {}) | null

/** An event as it is stored. */
interface AuditRow {
  readonly action: string
  readonly actor_id: string
  readonly actor_name: string
  readonly target_name: string
  readonly changes: { readonly field: string }[]
}

/** The parts of a request. */
export interface AppCall {
  readonly params?: Record<string, string>
  readonly query?: Record<string, string | number | boolean | undefined>
  readonly body?: unknown
  /** Replace those of a page of the application. */
  readonly headers?: Record<string, string | undefined>
  /** Another process of the application. */
  readonly url?: string
}

/** A response that the contract allows. `body` has the operation's type, `error` the error's. */
export interface AppResponse<Id extends AppOperationId> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: AppResponseBody<Id>
  readonly error: AppErrorBody
  /** The token of the session cookie that the response sets; empty: the cookie is removed. */
  readonly cookie: string | undefined
}

/** An application in this process with its own database. Its properties exist only inside of hooks and tests. */
export type TestApp = Awaited<ReturnType<typeof startTestApp>>

/** The token of the internal API in tests. */
export const INTERNAL_API_TOKEN = 'test-token-of-the-internal-api-0123456789'

/** Returns the environment of an application on this database. */
export function testEnv(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    AMQP_URL: 'amqp://127.0.0.1:1',
    DISPATCHER_URL: 'http://127.0.0.1:1',
    INTERNAL_API_TOKEN,
    APP_URL: 'http://localhost:8083',
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
  }
}

/** Starts an application on a migrated database, with an organization. Its `stack` stops what is started with it. */
export async function startTestApp(db: Database, config: AppConfig) {
  const { logger, lines: logLines } = createCapturedLogger({ service: 'app' })
  const queue = createInProcessQueue()
  /** Messages published to the session queue. */
  const published: Parameters<typeof queue.publish>[0][] = []
  const sessionQueue: typeof queue = {
    ...queue,
    publish: (message, properties) => {
      published.push(message)
      return queue.publish(message, properties)
    },
  }
  const stack = new AsyncDisposableStack()
  stack.defer(() => queue.close())
  /** Starts another process of the application on the same database. Only such a one runs the background tasks. */
  const startAnother = async (change: Partial<AppConfig> = {}, hasMaintenance = true): Promise<RunningService> => {
    const started = await startApp({ ...config, ...change }, { logger, sessionQueue, hasMaintenance })
    stack.defer(() => started.stop())
    return started
  }
  const createPerson = async (
    organizationId: string,
    role: Role,
    email = `${role}-${newId()}@acme.test`,
  ): Promise<TestPerson> => {
    const values = { role, name: `The ${role}`, email }
    const { cookie, ...ids } = await createSignedInUser(db.pool, organizationId, values)
    return { ...ids, email, role, organizationId, token: cookie.value }
  }
  const createOrganization = async (name = `Acme ${newId()}`): Promise<TestOrganization> => {
    const id = newId()
    await db.pool.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [id, name])
    const [owner, admin, member] = await Promise.all(
      (['owner', 'admin', 'member'] as const).map((role) => createPerson(id, role)),
    )
    return { id, name, owner: owner!, admin: admin!, member: member! }
  }
  const { url, metricsPort } = await startAnother({}, false)
  /** Made before the first test. */
  const organization = await createOrganization('Acme')
  /** Every cookie, key and link token that was answered, and every cookie that was sent. */
  const secrets = new Set<string>()
  /** Calls an operation; throws when the contract does not allow the response. */
  const call = async <Id extends AppOperationId>(
    caller: Caller,
    operationId: Id,
    request: AppCall = {},
  ): Promise<AppResponse<Id>> => {
    const who = isRole(caller) ? organization[caller] : caller
    const response = await callApp(request.url ?? url, who, operationId, request)
    for (const secret of secretsOf(who, response)) secrets.add(secret)
    return response
  }
  return {
    url,
    metricsUrl: `http://127.0.0.1:${metricsPort}`,
    config,
    db,
    organization,
    logLines,
    published,
    secrets,
    sessionQueue,
    stack,
    call,
    /** Reads two entries a page until the last page, and returns the values of a field. */
    listAll: async (who: Caller, operationId: AppOperationId, field: string, query: AppCall['query'] = {}) => {
      const values: unknown[] = []
      let cursor: string | undefined
      do {
        const { body } = await call(who, operationId, { query: { ...query, limit: 2, cursor } })
        const page = body as { data: Record<string, unknown>[]; pagination: { next_cursor: string | null } }
        values.push(...page.data.map((entry) => entry[field]))
        cursor = page.pagination.next_cursor ?? undefined
      } while (cursor)
      return values
    },
    /** The audit events about a thing, oldest first. */
    auditOf: async (targetId: string): Promise<AuditRow[]> => {
      const columns = 'action, actor_id, actor_name, target_name, changes'
      const text = `SELECT ${columns} FROM audit_events WHERE target_id = $1 ORDER BY id`
      return (await db.pool.query<AuditRow>(text, [targetId])).rows
    },
    createOrganization,
    createPerson,
    startAnother,
  }
}

const isRole = (caller: Caller): caller is Role => ROLES.some((role) => role === caller)
const isErrorResponse = compile(AppErrorResponse)
const responseChecks = new Map<string, ReturnType<typeof compile>>()

async function callApp<Id extends AppOperationId>(
  url: string,
  who: TestPerson | string | null,
  operationId: Id,
  call: AppCall,
): Promise<AppResponse<Id>> {
  const { method, path } = APP_OPERATIONS[operationId]
  const filled = path.replaceAll(/\{(\w+)\}/g, (part, name: string) => encodeURIComponent(call.params?.[name] ?? part))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(call.query ?? {})) if (value !== undefined) search.set(name, String(value))
  const token = typeof who === 'object' ? who?.token : who
  const headers = new Headers()
  const sent = {
    'sec-fetch-site': 'same-origin',
    'content-type': method === 'get' ? undefined : 'application/json',
    cookie: token === undefined ? undefined : `__Host-session=${token}`,
    ...call.headers,
  }
  for (const [name, value] of Object.entries(sent)) if (value !== undefined) headers.set(name, value)
  const response = await fetch(`${url}${filled}${search.size > 0 ? `?${search.toString()}` : ''}`, {
    method: method.toUpperCase(),
    headers,
    redirect: 'manual',
    ...(call.body === undefined ? {} : { body: typeof call.body === 'string' ? call.body : JSON.stringify(call.body) }),
  })
  const text = await response.text()
  const body = text === '' ? undefined : (JSON.parse(text) as unknown)
  const problem = contractProblem(operationId, response, body)
  if (problem) throw new Error(`${operationId}: ${problem}\n${response.status} ${text}`)
  const cookie = /^__Host-session=([^;]*)/.exec(response.headers.get('set-cookie') ?? '')?.[1]
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: body as AppResponseBody<Id>,
    error: ((body ?? {}) as { error: AppErrorBody }).error,
    cookie,
  }
}

function secretsOf(who: TestPerson | string | null, { cookie, text }: AppResponse<AppOperationId>): string[] {
  const sent = typeof who === 'object' ? who?.token : who
  const [, linkToken] = /"url":"[^"]*#([\w-]{43})"/.exec(text) ?? []
  const [, key] = /"key":"(wfk_\w+)"/.exec(text) ?? []
  return [sent, cookie, linkToken, key].filter((secret) => secret !== undefined && secret.length > 20) as string[]
}

/** Says how a response breaks the contract; undefined if it does not. */
function contractProblem(
  operationId: AppOperationId,
  { status, headers }: Response,
  body: unknown,
): string | undefined {
  const { success } = APP_OPERATIONS[operationId]
  if (headers.get('cache-control') !== 'no-store') return 'Cache-Control is not no-store'
  if (status < 400) {
    if (status !== success.status) return `status ${status} is not declared`
    if (!('schema' in success)) return body === undefined ? undefined : 'has a body'
    const check = responseChecks.get(operationId) ?? compile(success.schema)
    responseChecks.set(operationId, check)
    return check(body) ? undefined : `does not match its schema: ${JSON.stringify(check.errors?.slice(0, 3))}`
  }
  if (!isErrorResponse(body)) return `does not match the error's schema: ${JSON.stringify(isErrorResponse.errors)}`
  const { code, request_id: requestId } = body.error
  if (ERROR_CODES[code as keyof typeof ERROR_CODES] !== status) return `code ${code} is not of status ${status}`
  return requestId === headers.get('x-request-id') ? undefined : 'request_id is not X-Request-Id'
}
