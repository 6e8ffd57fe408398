import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createDatabase, migrate, newId } from '@workflow-service/database'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@workflow-service/dev-servers'
import {
  type CustomerEndpoint,
  startCustomerEndpoint,
  freePort,
  createCertificate,
  type StartedProcess,
  waitUntil,
} from '@workflow-service/testkit'
import { sourceIn, sourcePath, startDispatcherProcess, testEnv, TOKEN } from './support/test-dispatcher.ts'

const SECRETS = ['Zq7-first"secret\\of/the+test=', 'Zq7-zweites Geheimnis äöü of the test']
/** Must be found by the search, which proves that the search works. */
const MARKER = 'marker-that-is-not-a-secret'

let folder: string
let postgres: EmbeddedPostgres
const postgresLog: string[] = []
let endpoint: CustomerEndpoint
let secureEndpoint: CustomerEndpoint
let dispatcher: { url: string; process: StartedProcess }
const responses: string[] = []
const organizationId = newId()

/** Starts a PostgreSQL that logs every statement with all its parameters. */
const startLoggingPostgres = (port?: number): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({
    dataDir: join(folder, 'data'),
    port,
    log: (line) => postgresLog.push(line),
    settings: {
      fsync: 'off',
      log_statement: 'all',
      log_parameter_max_length: -1,
      log_parameter_max_length_on_error: -1,
      log_min_error_statement: 'debug5',
    },
  })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'secret-leaks-'))
  postgres = await startLoggingPostgres()
  await migrate({ databaseUrl: postgres.url })
  const db = createDatabase({ url: postgres.url, applicationName: 'test', maxConnections: 1 })
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  await db.close()
  endpoint = await startCustomerEndpoint()
  secureEndpoint = await startCustomerEndpoint({ tls: await createCertificate({ names: ['127.0.0.1'] }) })
  dispatcher = await startDispatcherProcess({ ...testEnv(postgres.url), LOG_LEVEL: 'trace' })
})
afterAll(async () => {
  await dispatcher.process.stop()
  await postgres.stop('immediate')
  await endpoint.close()
  await secureEndpoint.close()
  await rm(folder, { recursive: true, force: true })
})

/** Calls the dispatcher and keeps the response and its headers for the search. */
async function call(method: string, path: string, body?: unknown): Promise<number> {
  const response = await fetch(`${dispatcher.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  responses.push(`${JSON.stringify([...response.headers])}\n${await response.text()}`)
  return response.status
}

const source = (change: Record<string, unknown>): Record<string, unknown> =>
  sourceIn({ description: MARKER, endpoint_url: endpoint.url, ...change })

const pathOf = (sourceId: string): string => sourcePath(organizationId, sourceId)

/** Returns the text plain, in JSON, percent-encoded, in hex, and in Base64 at each of the three possible offsets. */
function spellings(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8')
  const inBase64 = [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    return encoded.slice(shift === 0 ? 0 : 4, -4)
  })
  const inHex = bytes.toString('hex')
  return [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text), inHex, inHex.toUpperCase(), ...inBase64]
}

async function filesBelow(top: string): Promise<string[]> {
  const entries = await readdir(top, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** Returns the names of the outputs that contain one of the texts. */
function outputsWith(texts: string[], outputs: Map<string, Buffer>): string[] {
  return [...outputs].filter(([, bytes]) => texts.some((text) => bytes.includes(text))).map(([name]) => name)
}

/** An answer that repeats the text in its body and its headers. */
const echo = (text: string | undefined): { status: number; headers: Record<string, string>; body: string } => ({
  status: 200,
  headers: { 'x-echo': encodeURIComponent(String(text)) },
  body: String(text),
})

/** Uses every operation, with success, with errors, and while the database is stopped. */
async function useEverything(): Promise<void> {
  const [first, second] = SECRETS
  const id = newId()
  expect(await call('PUT', pathOf(id), source({ signing_secret: first }))).toBe(201)
  expect(await call('PUT', pathOf(id), source({ signing_secret: second }))).toBe(200)
  expect(await call('PUT', pathOf(id), source({ name: 'kept' }))).toBe(200)
  expect(await call('PUT', `${pathOf(id)}?verify=if_changed`, source({ name: 'kept', signing_secret: second }))).toBe(
    200,
  )
  expect(await call('POST', `${pathOf(id)}/test`)).toBe(200)
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first, endpoint_url: 'nonsense' }))).toBe(422)
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: [first], extra: first }))).toBe(422)
  expect(await call('PUT', pathOf(newId()), `{"signing_secret": ${JSON.stringify(first)}, oops`)).toBe(400)
  expect(await call('PUT', pathOf(newId()), source({ name: 'KEPT', signing_secret: first }))).toBe(409)

  endpoint.answerWith(() => echo(first))
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first }))).toBe(201)
  endpoint.answerWith(() => ({ ...echo(first), status: 500 }))
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first }))).toBe(422)
  endpoint.answerWith(() => ({ redirect: `https://x.example/?secret=${encodeURIComponent(String(first))}` }))
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first }))).toBe(422)
  endpoint.answerWith('reset')
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first }))).toBe(422)
  for (const endpoint_url of [`http://127.0.0.1:${await freePort()}/`, secureEndpoint.url])
    expect(await call('PUT', pathOf(newId()), source({ signing_secret: first, endpoint_url }))).toBe(422)

  const send = (payload: Record<string, unknown>): Promise<number> =>
    call('PUT', `/internal/deliveries/${newId()}`, { organization_id: organizationId, source_id: id, payload })
  for (const answer of [echo(second), { ...echo(second), status: 422 }, { status: 500 }, 'reset' as const]) {
    endpoint.answerWith(answer)
    expect(await send({ order_id: MARKER, total: 1 })).toBe(200)
  }
  expect(await send({ wrong: true })).toBe(200)
  for (const path of ['', `/${id}`, `/${id}/deliveries?limit=100`]) await call('GET', pathOf('').slice(0, -1) + path)
  for (const path of ['/metrics', '/readyz', '/healthz', '/internal/openapi.json', '/nothing']) await call('GET', path)

  endpoint.answerWith(async () => {
    await postgres.stop('immediate')
    return { status: 204 }
  })
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first }))).toBe(503)
  expect(await call('PUT', pathOf(newId()), source({ signing_secret: first }))).toBe(503)
  postgres = await startLoggingPostgres(postgres.port)
  await waitUntil(async () => (await fetch(`${dispatcher.url}/readyz`)).status === 200)
  endpoint.answerWith({ status: 204 })
  expect(await call('DELETE', pathOf(id))).toBe(204)
}

test('secrets and tokens appear in no database file, write-ahead log, log, error, metric or response', async () => {
  await useEverything()
  const admin = createDatabase({ url: postgres.adminUrl, applicationName: 'test', maxConnections: 1 })
  await admin.pool.query('CHECKPOINT')
  await admin.close()
  expect((await dispatcher.process.stop()).code).toBe(0)
  // A running server removes files, also between the list of them and the reads.
  await postgres.stop('immediate')

  const outputs = new Map<string, Buffer>([
    ['responses', Buffer.from(responses.join('\n'))],
    ['stdout', Buffer.from(dispatcher.process.stdout)],
    ['postgres.log', Buffer.from(postgresLog.join('\n'))],
    ['stderr', Buffer.from(dispatcher.process.stderr)],
  ])
  const data = join(folder, 'data')
  for (const file of await filesBelow(data)) outputs.set(file.slice(data.length), await readFile(file))

  // The search finds the marker in the responses, the tables, the write-ahead log and the log of PostgreSQL.
  const found = outputsWith([MARKER], outputs)
  for (const kind of [/^responses/, /^\/base\//, /^\/pg_wal\//, /^postgres\.log/]) {
    expect(found).toContainEqual(expect.stringMatching(kind))
  }
  expect(outputsWith([organizationId], outputs)).toContain('stdout')
  // The endpoint received the secrets and the tokens.
  const received = endpoint.requests.map(({ text }) => text).join('\n')
  for (const secret of SECRETS) expect(received).toContain(JSON.stringify(secret).slice(1, -1))
  const tokens = new Set(endpoint.requests.map(({ headers }) => String(headers['x-service-token'])))
  expect(tokens.size).toBeGreaterThan(1)

  expect(outputsWith(SECRETS.flatMap(spellings), outputs)).toEqual([])
  tokens.delete('undefined')
  expect(outputsWith([...tokens], outputs)).toEqual([])
})
