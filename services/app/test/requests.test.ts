import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request, type Server } from 'node:http'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from '@jest/globals'
import { type AppOperation, type AppOperationId, RESEND_IDS_MAX } from '@workflow-service/contract'
import { APP_OPERATIONS, bodyLimitsOf, describeAppApi, isOpen } from '@workflow-service/contract/app'
import { newId } from '@workflow-service/database'
import { byTime, encodeCursor } from '@workflow-service/service-kit'
import { beginTransaction, openConnection, sendRaw, untilLocked, waitUntil } from '@workflow-service/testkit'
import { type AppCall, useTestApp } from './support/use-app.ts'

const app = useTestApp()

const WITH_BODY = Object.values<AppOperation>(APP_OPERATIONS).filter(({ body }) => body !== undefined)

/** One operation of each kind of limits. */
const LIMITED = [...Map.groupBy(WITH_BODY, (operation) => JSON.stringify(bodyLimitsOf(operation))).values()].flatMap(
  ([operation]) => [[operation!.id as AppOperationId, bodyLimitsOf(operation!)] as const],
)

test.each(LIMITED)(
  '%s refuses a body beyond its limits %j, and says the limit',
  async (id, { maxBytes, maxMembers, maxDepth }) => {
    const params = Object.fromEntries(
      [...APP_OPERATIONS[id].path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, newId()]),
    )
    const messageFor = async (body: string): Promise<string> => {
      const { status, error } = await app.call(app.organization.owner, id, { params, body })
      return `${status} ${error.message}`
    }
    const tooLarge = `400 The body is larger than ${Math.round(maxBytes / 1024)} KiB.`
    expect(await messageFor(`{}${' '.repeat(maxBytes - 1)}`)).toBe(tooLarge)
    // All fields of an approval may be absent: it looks for the payload.
    expect(await messageFor(`{}${' '.repeat(maxBytes - 2)}`)).toMatch(/^(?:422 (?!body)|404 )/)
    const members = Array.from({ length: maxMembers + 1 }, () => 1).join()
    expect(await messageFor(`[${members}]`)).toBe(
      `422 body must have at most ${maxMembers.toLocaleString('en')} fields and list items in all.`,
    )
    expect(await messageFor('['.repeat(maxDepth + 1))).toBe(
      `422 body must not nest objects and lists more than ${maxDepth} levels deep.`,
    )
  },
)

test('people who are not signed in send less than others, and only some operations take more', () => {
  const ofStrangers = WITH_BODY.filter(isOpen).map(bodyLimitsOf)
  expect(ofStrangers).toEqual(ofStrangers.map(() => ({ maxBytes: 16 * 1024, maxMembers: 100, maxDepth: 64 })))
  const larger = WITH_BODY.filter(({ bodyLimits }) => bodyLimits).map(({ id }) => id)
  const taking = ['saveWorkflowUsers', 'saveTrigger', 'saveFile', 'saveCase', 'saveWebhookSource', 'approveDelivery']
  expect(new Set(larger)).toEqual(new Set([...taking, 'previewResends', 'createResendJob']))
})

test('as many deliveries as may be selected can be sent again', async () => {
  const body = { ids: Array.from({ length: RESEND_IDS_MAX }, newId), per_second: 1 }
  expect(await app.call(app.organization.owner, 'previewResends', { body })).toMatchObject({ status: 200 })
})

const countSlots = async () =>
  /http_request_slots_in_use\{stage="reading",service="app"\} (\d+)/.exec(
    await (await fetch(`${app.metricsUrl}/metrics`)).text(),
  )?.[1]

const signIn = async () => (await app.call(null, 'signIn', { body: { email: 'a@acme.test', password: 'x' } })).status

test('bodies of strangers that never arrive take all slots of a network, and none any more once their connections end', async () => {
  const lines = ['POST /app/sign-in HTTP/1.1', 'Host: localhost', 'Sec-Fetch-Site: same-origin']
  const unfinished = ['Content-Type: application/json', 'Transfer-Encoding: chunked', '', '1', '{', '']
  const connections = await Promise.all(Array.from({ length: 50 }, () => openConnection(app.url)))
  for (const connection of connections) connection.write([...lines, ...unfinished].join('\r\n'))
  await waitUntil(async () => (await countSlots()) === '50')
  expect(await signIn()).toBe(503)
  for (const { socket } of connections) socket.resetAndDestroy()
  await waitUntil(async () => (await countSlots()) === '0')
  expect(await signIn()).toBe(401)
})

const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url')
const at = { createdAt: new Date(1_700_000_000_000), id: newId() }
const lists = (Object.keys(APP_OPERATIONS) as AppOperationId[])
  .filter((id) => JSON.stringify(APP_OPERATIONS[id]).includes('"cursor":'))
  .map((id): [AppOperationId, AppCall] => [id, { params: { source_id: newId() } }])

test.each(lists)('a cursor that is crafted or of another list is refused: %s', async (id, call) => {
  const cursors = ['x', encode('a@b.c'), encode(Buffer.from([0xff, 0xfe, 0])), encodeCursor(byTime('another'), at)]
  for (const cursor of [...cursors, 'a'.repeat(513)]) {
    const { status } = await app.call('owner', id, { ...call, query: { cursor } })
    expect([cursor, status]).toEqual([cursor, 422])
  }
})

test('many exports of one organization take no connection from the requests of another one, nor all from its own', async () => {
  const other = await app.createOrganization()
  using blocker = await beginTransaction(app.db.pool)
  // An export waits for the lock, and keeps its connection.
  await blocker.query('LOCK TABLE webhook_sources IN ACCESS EXCLUSIVE MODE')
  const exports = Array.from({ length: 30 }, () => app.call(app.organization.admin, 'exportManifest'))
  await untilLocked(app.db.pool)
  for (const person of [other.member, app.organization.admin, other.owner]) {
    expect((await app.call(person, 'listSignIns')).status).toBe(200)
  }
  await blocker.query('COMMIT')
  const statuses = (await Promise.all(exports)).map(({ status }) => status)
  expect(statuses).toEqual(exports.map(() => 200))
})

let [named, unnamed] = ['', '']

beforeAll(async () => {
  named = (await app.startAnother({ appUrl: 'https://app.acme.test', trustProxy: 1 })).url
  unnamed = (await app.startAnother({ appUrl: undefined })).url
})

async function statusAt(url: string, host: string, path = '/app/setup', more = ''): Promise<string> {
  const response = await sendRaw(url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`)
  if (response?.status !== 421) return String(response?.status)
  const { error } = JSON.parse(response.text) as { error: { code: string; message: string; request_id: string } }
  expect(error.request_id).toBe(response.headers['x-request-id'])
  return `421 ${error.code}: ${error.message}`
}

test.each(['app.acme.test', 'APP.acme.test:8443', 'localhost', 'localhost:1', '127.0.0.1:80', '127.1.2.3', '[::1]:80'])(
  'answers at the host %s',
  async (host) => expect(await statusAt(named, host)).toBe('200'),
)

test.each([
  'evil.test',
  'app.acme.test.evil.test',
  'evil.test:app.acme.test',
  '127.0.0.1.evil.test',
  'localhost.',
  '10.0.0.1',
  'app.acme.test@evil.test',
  '',
])('refuses every path at the host %j, except that of the health check', async (host) => {
  for (const path of ['/', '/app/setup', '/app/openapi.json', '/app/me', '/nothing']) {
    expect(await statusAt(named, host, path)).toBe(
      '421 misdirected_request: The application is at https://app.acme.test, and answers at no other host. ' +
        'Open it there, or set APP_URL; a proxy must pass Host on.',
    )
  }
  expect(await statusAt(named, host, '/healthz')).toBe('200')
})

test('a page of another host cannot name the own one', async () => {
  expect(await statusAt(named, 'evil.test', '/app/setup', 'X-Forwarded-Host: app.acme.test\r\n')).toMatch(/^421 /)
})

test('without APP_URL it answers on its own machine only, and says what to do', async () => {
  expect(await statusAt(unnamed, 'localhost')).toBe('200')
  expect(await statusAt(unnamed, 'app.acme.test')).toMatch(/ set it to the address that people type\.$/)
})

test('Anyone can read the OpenAPI document, whose server is the application', async () => {
  const response = await fetch(new URL('/app/openapi.json', app.url))
  expect(response.status).toBe(200)
  expect(await response.json()).toEqual(describeAppApi(app.config.appUrl ?? app.url))
})

const SCRIPT = 'console.log("the page")\n'.repeat(100)

/** Reads a response as it was sent: `fetch` would decompress it. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const sent = request(`${app.url}${path}`, { method, headers }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks = await response.toArray()
  return { status: response.statusCode, headers: response.headers, bytes: Buffer.concat(chunks as Buffer[]) }
}

const NAVIGATION = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('Without a built page, a browser gets an explanation, and nothing else is answered with a page', async () => {
  const { status, headers, bytes } = await get('/', NAVIGATION)
  expect([status, headers['content-type']]).toEqual([503, 'text/plain; charset=utf-8'])
  expect(bytes.toString()).toContain('pnpm build:console')
  expect((await get('/assets/main.js')).status).toBe(404)

  // The page is found when it has been built meanwhile.
  mkdirSync(join(app.config.consoleFolder, 'assets'), { recursive: true })
  writeFileSync(join(app.config.consoleFolder, 'index.html'), '<!doctype html><title>The page</title>')
  writeFileSync(join(app.config.consoleFolder, 'assets', 'main-4f2a.js'), SCRIPT)
  writeFileSync(join(app.config.consoleFolder, '.manifest.json'), '{}')
  for (const path of ['/', '/workflows/1', '/sign-in?next=%2F']) {
    const expected = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' }
    expect([path, await get(path, NAVIGATION)]).toMatchObject([path, { status: 200, headers: expected }])
  }
  for (const path of ['/assets/missing.js', '/.manifest.json', '/../package.json', '/%2e%2e/package.json']) {
    expect([path, (await get(path)).status]).toEqual([path, 404])
  }
  expect((await get('/', NAVIGATION, 'POST')).status).toBe(404)
  expect((await get('/', NAVIGATION, 'HEAD')).bytes).toHaveLength(0)

  const plain = await get('/assets/main-4f2a.js')
  expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
  const brotli = await get('/assets/main-4f2a.js', { 'accept-encoding': 'gzip, br' })
  const gzip = await get('/assets/main-4f2a.js', { 'accept-encoding': 'gzip, br;q=0' })
  const encodings = [plain, brotli, gzip].map(({ headers: { 'content-encoding': encoding } }) => encoding)
  expect(encodings).toEqual([undefined, 'br', 'gzip'])
  const texts = [plain.bytes, brotliDecompressSync(brotli.bytes), gunzipSync(gzip.bytes)].map(String)
  expect(texts).toEqual([SCRIPT, SCRIPT, SCRIPT])
})

test('The largest file has a minute to arrive', async () => {
  let timeoutMs: number | undefined
  const keepTimeout = (message: unknown): void => {
    timeoutMs = (message as { server: Server }).server.requestTimeout
  }
  subscribe('http.server.request.start', keepTimeout)
  await get('/healthz')
  unsubscribe('http.server.request.start', keepTimeout)
  expect(timeoutMs).toBe(60_000)
})

const keptAt = async (url: string) => (await fetch(`${url}/healthz`)).headers.get('keep-alive')

test('An unused connection of a proxy is kept longer than proxies keep theirs, 120 s, and one of strangers is not', async () => {
  expect([await keptAt(named), await keptAt(unnamed)]).toEqual(['timeout=125', 'timeout=5'])
})

test('Every response has the security headers', async () => {
  for (const path of ['/', '/workflows', '/assets/missing.js', '/app/me', '/app/unknown', '/healthz']) {
    const { headers } = await get(path, NAVIGATION)
    expect([path, headers]).toMatchObject([
      path,
      {
        'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        ...(path.startsWith('/app/') ? { 'cache-control': 'no-store' } : {}),
      },
    ])
    expect(headers['x-powered-by']).toBeUndefined()
  }
  const { headers } = await get('/', NAVIGATION)
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  )
  expect(headers['strict-transport-security']).toBeUndefined()
  const { url } = await app.startAnother({ appUrl: 'https://workflows.example.com' })
  expect((await fetch(`${url}/`)).headers.get('strict-transport-security')).toBe('max-age=31536000')
})

test('Readiness and metrics are on a port of their own', async () => {
  expect((await fetch(`${app.metricsUrl}/readyz`)).status).toBe(200)
  expect((await fetch(`${app.metricsUrl}/metrics`)).status).toBe(200)
  for (const path of ['/readyz', '/metrics']) expect((await get(path)).status).toBe(404)
})
