import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { DeliveryOut, FieldError, InternalErrorBody, WebhookSourceOut } from '@workflow-service/contract'
import { createDatabase, type Database, newId } from '@workflow-service/database'
import { createLogger } from '@workflow-service/service-kit'
import { createTestDatabase, type StartedProcess, startProcess, type TestDatabase } from '@workflow-service/testkit'
import { type DispatcherConfig, readDispatcherConfig } from '../../src/config.ts'
import type { DispatcherOverrides } from '../../src/app-context.ts'
import { type RunningDispatcher, startDispatcher } from '../../src/start-dispatcher.ts'

/** A token of the test dispatchers. */
export const TOKEN = randomBytes(24).toString('hex')

/** What the internal API answered. */
export interface Answer {
  status: number
  headers: Headers
  /** The parsed body, null when there was none: of whichever operation was called. */
  body: AnswerBody
}

/** All that any operation answers. */
export type AnswerBody = WebhookSourceOut &
  DeliveryOut & {
    error: InternalErrorBody & { details: FieldError[] }
    data: DeliveryOut[]
    pagination: { has_more: boolean; next_cursor: string | null }
  }

/** A dispatcher in this process, on a database of its own, which lets requests to 127.0.0.1 through. */
export interface TestDispatcher {
  url: string
  config: DispatcherConfig
  database: TestDatabase
  db: Database
  organizationId: string
  /** Every log line so far. */
  logLines: Record<string, unknown>[]
  /** A call with the token; the body is sent as JSON. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  sourcePath(sourceId: string): string
  /** Another dispatcher on the same database. */
  startAnother(overrides?: DispatcherOverrides, config?: Partial<DispatcherConfig>): Promise<RunningDispatcher>
  stop(): Promise<void>
}

/** The environment of a dispatcher on this database, for this process or one of its own. */
export function testEnv(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    INTERNAL_API_TOKEN: TOKEN,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    HOST: '127.0.0.1',
    PORT: '0',
  }
}

/** Starts one; `stop` it in `afterAll`. */
export async function startTestDispatcher(
  overrides: DispatcherOverrides = {},
  env: Record<string, string> = {},
): Promise<TestDispatcher> {
  const database = await createTestDatabase()
  const db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 5 })
  const organizationId = newId()
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  const config = readDispatcherConfig({ ...testEnv(database.url), ...env })
  const logLines: Record<string, unknown>[] = []
  const logger = createLogger({
    service: 'dispatcher',
    level: 'debug',
    destination: { write: (line) => void logLines.push(JSON.parse(line) as Record<string, unknown>) },
  })
  const running: RunningDispatcher[] = []
  const startAnother: TestDispatcher['startAnother'] = async (more = {}, change = {}) => {
    const dispatcher = await startDispatcher({ ...config, ...change }, { logger, ...overrides, ...more })
    running.push(dispatcher)
    return dispatcher
  }
  const { url } = await startAnother()
  return {
    url,
    config,
    database,
    db,
    organizationId,
    logLines,
    call: (method, path, body, headers) => callDispatcher(url, method, path, body, headers),
    sourcePath: (sourceId) => `/internal/organizations/${organizationId}/webhook-sources/${sourceId}`,
    startAnother,
    stop: async () => {
      await Promise.all(running.map((dispatcher) => dispatcher.stop()))
      await db.close()
      await database.drop()
    },
  }
}

/** A call of the internal API with the test's token. */
export async function callDispatcher(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? null : JSON.parse(text)) as AnswerBody,
  }
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** A dispatcher as a process of its own, which a test may kill. */
export async function startDispatcherProcess(
  env: Record<string, string>,
): Promise<{ url: string; process: StartedProcess }> {
  const started = await startProcess({ args: [MAIN], env, readyWhen: { line: '"msg":"listening"' } })
  const line = started.jsonLines.find(({ msg }) => msg === 'listening')
  return { url: String(line?.['url']), process: started }
}

/** A source to save, with what is given here. */
export function sourceIn(change: Record<string, unknown>): Record<string, unknown> {
  return {
    name: `Order intake ${newId()}`,
    description: 'Takes orders.',
    endpoint_url: 'http://127.0.0.1:9/',
    example_request_body: { order_id: 'A-1', total: 99.5 },
    ...change,
  }
}

/** Saves a source and resolves with its id. */
export async function saveTestSource(
  dispatcher: TestDispatcher,
  change: Record<string, unknown>,
  verify: 'always' | 'never' = 'always',
  id = newId(),
): Promise<string> {
  const path = `${dispatcher.sourcePath(id)}?verify=${verify}`
  const answer = await dispatcher.call('PUT', path, sourceIn(change))
  if (answer.status > 201) throw new Error(`The source was not saved: ${JSON.stringify(answer.body)}`)
  return id
}
