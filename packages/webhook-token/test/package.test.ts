import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createTestDatabase, freePort, startRedis, waitUntil } from '@workflow-service/testkit'
import { Client } from 'pg'
import { Redis } from 'ioredis'
import { findNodes, type InstalledPackage, installPackage } from '@workflow-service/testkit/install-package'
import { createServiceHeaders } from '../src/index.js'

const packageFolder = join(import.meta.dirname, '..')
const secret = 'whsec-example-3f9d1c7b5a2e8046'
let installed: InstalledPackage

/** The endpoints of the documents, as files of a customer's project. */
const readme = ['README.md', 'EXAMPLES.md'].map((name) => readFileSync(join(packageFolder, name), 'utf8')).join('\n')
const blockAfter = (text: string): string => readme.slice(readme.indexOf(text)).match(/```ts\n([^]*?)```/)?.[1] ?? text
const examples = ['Express', 'Fastify', 'Hono', 'Next'].map((name) => ({
  name,
  file: `${name.toLowerCase()}.mts`,
  code: blockAfter(`## ${name}\n`),
}))
const stores = ['PostgreSQL', 'Redis']

beforeAll(async () => {
  installed = await installPackage(packageFolder)
  for (const name of ['express', 'fastify', 'hono', 'ioredis', 'pg', '@types']) {
    symlinkSync(join(packageFolder, 'node_modules', name), join(installed.project, 'node_modules', name))
  }
  for (const { file, code } of examples) installed.write(file, code)
  for (const store of stores) installed.write(`${store}.mts`, blockAfter(`\n${store}, `))
})
afterAll(() => installed.remove())

describe('the packed package', () => {
  test('has no findings of publint and "are the types wrong"', () => {
    expect(installed.problems).toEqual([])
    const names = ['index', 'parse-webhook']
    const published = (folder: string) => names.flatMap((name) => [`${folder}/${name}.d.ts`, `${folder}/${name}.js`])
    expect(installed.files).toEqual(
      [
        'EXAMPLES.md',
        'LICENSE',
        'OTHER_LANGUAGES.md',
        'README.md',
        'package.json',
        'dist/cjs/package.json',
        ...published('dist/cjs'),
        ...published('src'),
      ].toSorted(),
    )
  })

  const nodes = [...findNodes()].filter(([version]) => Number.parseInt(version.slice(1)) >= 20)
  const missing = [20, 22, 24].filter((major) => nodes.every(([version]) => !version.startsWith(`v${major}.`)))
  const skipped = missing.length > 0 ? `; not installed and not run: ${missing.join(', ')}` : ''
  test.each(nodes)(`works on Node %s, by import and by require${skipped}`, async (_version, node) => {
    const code = `
const example = { lines: [{ id: 1 }] }
const use = async () => {
  const { ok } = await checkServiceToken(await createServiceToken('secret'), 'secret')
  console.log(ok, parseWebhook('{"lines":[{"id":2}]}', example).kind)
  try { verifyServiceToken(process.env.NO_SUCH_SETTING) } catch (error) { console.log(error.name) }
}
void use()`
    const names = '{ checkServiceToken, createServiceToken, parseWebhook, verifyServiceToken }'
    installed.write('use.mjs', `import ${names} from '@workflow-service/webhook-token'\n${code}`)
    installed.write('use.cjs', `const ${names} = require('@workflow-service/webhook-token')\n${code}`)
    for (const file of ['use.mjs', 'use.cjs']) {
      expect(await installed.run(file, { node })).toBe('true payload\nTypeError\n')
    }
  })

  test('type-checks with the endpoints and stores of the documents, in ES modules, CommonJS and with a bundler; so does its code', async () => {
    installed.write('use.cts', examples.at(-1)?.code ?? '')
    const code = ['index.js', 'parse-webhook.js'].map((name) => join(packageFolder, 'src', name))
    const files = [...examples.map(({ file }) => file), ...stores.map((store) => `${store}.mts`), 'use.cts', ...code]
    const options = { types: ['node'], skipLibCheck: true }
    const strict = { ...options, allowJs: true, checkJs: true, noUncheckedIndexedAccess: true }
    await expect(installed.typeCheck(files, { ...strict, module: 'nodenext' })).resolves.toBeUndefined()
    const bundler = { ...options, module: 'esnext', moduleResolution: 'bundler' }
    await expect(installed.typeCheck(['next.mts'], bundler)).resolves.toBeUndefined()
  })

  test.each(stores)('has an example of alreadySeen that works with %s', async (store) => {
    const { alreadySeen } = (await import(join(installed.project, `${store}.mts`))) as {
      alreadySeen: (client: Client | Redis, id: string) => Promise<boolean>
    }
    const { client, stop } = store === 'Redis' ? await connectRedis() : await connectPostgres()
    try {
      const first = await Promise.all([alreadySeen(client, 'a'), alreadySeen(client, 'b')])
      expect([first, await alreadySeen(client, 'a')]).toEqual([[false, false], true])
    } finally {
      await stop()
    }
  })
})

async function connectPostgres() {
  const database = await createTestDatabase()
  const client = new Client(database.url)
  await client.connect()
  await client.query(/CREATE TABLE received_deliveries [^`]*/.exec(readme)?.[0] ?? '')
  return {
    client,
    stop: async () => {
      await client.end()
      await database.drop()
    },
  }
}

async function connectRedis() {
  const server = await startRedis()
  const client = new Redis(server.url)
  return {
    client,
    stop: async () => {
      client.disconnect()
      await server.stop()
    },
  }
}

const post = (port: number | undefined, options: RequestInit = {}) =>
  fetch(`http://localhost:${port}/webhook`, { ...options, method: 'POST' })

describe('the endpoints of the README', () => {
  let child: ChildProcess
  const ports = new Map<string, number>()

  beforeAll(async () => {
    for (const { file } of examples) ports.set(file, await freePort())
    // All in one process. Hono and Next leave the server to the runtime: this one hands each request to them.
    const code = `
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
for (const [file, port] of ${JSON.stringify([...ports])}) {
  process.env.PORT = port
  const { default: app, POST } = await import('./' + file)
  const handle = POST ?? app?.fetch
  if (!handle) continue
  createServer(async (incoming, outgoing) => {
    const { url, method, headers } = incoming
    const answer = await handle(new Request('http://localhost' + url, { method, headers, body: await text(incoming) }))
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  }).listen(port)
}`
    const env = { ...process.env, SIGNING_SECRET: secret }
    child = spawn(process.execPath, [installed.write('serve.mjs', code)], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    for (const port of ports.values()) await waitUntil(() => post(port).catch(() => false), { timeoutMs: 60_000 })
  })
  afterAll(() => void child.kill())

  test.each(examples)('work unchanged with $name', async ({ file }) => {
    const send = async (
      value: unknown,
      signedWith: string | null = secret,
      sentBody?: string,
      deliveryId = randomUUID(),
    ) => {
      const body = JSON.stringify(value)
      const signed = await createServiceHeaders(signedWith, { deliveryId, body })
      const headers = { 'Content-Type': 'application/json', ...signed }
      const answer = await post(ports.get(file), { body: sentBody ?? body, headers })
      return [answer.status, await answer.text()] as const
    }
    const payload = { order_id: 'A-1', customer: 'Ada', total: 3, express: true }
    expect(await send({ type: 'service.webhook.verification' })).toEqual([204, ''])
    expect(await send(payload)).toEqual([200, 'thank you'])
    expect(await send({ ...payload, customer: 'x'.repeat(200_000) })).toEqual([200, 'thank you'])
    const [status, problems] = await send({ ...payload, total: '3' })
    expect([status, JSON.parse(problems) as unknown]).toMatchObject([422, [{ field: 'total', code: 'float_type' }]])
    expect((await send(payload, null))[0]).toBe(401)
    expect(await send(payload, secret, JSON.stringify({ ...payload, total: 4 }))).toEqual([401, 'wrong_signature'])
    const id = randomUUID()
    expect(await send(payload, secret, undefined, id)).toEqual([200, 'thank you'])
    expect(await send(payload, secret, undefined, id)).toEqual([200, 'received before'])
    const [refused, reason] = await send(payload, 'another secret')
    expect([refused, reason]).toEqual([401, expect.stringContaining('wrong_signature')])
  })
})
