import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createDatabase, deleteOrganization, deleteOrganizationRows } from '@workflow-service/database'
import { isAlive } from '@workflow-service/dev-servers'
import { freePort, startCustomerEndpoint, startProcess, waitUntil } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import got from 'got'
import { wf as runWf } from '../../../packages/cli/test/support/wf.ts'

const main = join(import.meta.dirname, '../src/main.ts')
// A URL: Node decodes the %20 of a path after --import.
const interruptAt = import.meta.resolve('./support/interrupt-at.ts')
/** The first start creates a PostgreSQL data folder, which takes a while on a busy machine. */
const START_MS = 120_000
/** The last line that a start prints. */
const READY = 'Ctrl-C'
const DEMO_ORGANIZATION = '7a3c1f5e-0d52-4c8e-9b1a-3f6f4f0f9a10'

type Stack = Awaited<ReturnType<typeof startProcess>>

let folder: string
let localDir: string
let port: number
let stacks: Stack[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'workflow-service-local-'))
  localDir = join(folder, '.local')
  port = await freePort()
  stacks = []
})
afterEach(async () => {
  for (const stack of stacks) await stack.stop(60_000)
  await rm(folder, { recursive: true, force: true })
})

async function run(env: Record<string, string> = {}, nodeOptions: string[] = [], readyLine?: string): Promise<Stack> {
  const stack = await startProcess({
    args: [...nodeOptions, main],
    env: { LOCAL_DIR: localDir, PORT: String(port), ...env },
    readyWhen: readyLine === undefined ? undefined : { line: readyLine },
    timeoutMs: START_MS,
  })
  stacks.push(stack)
  return stack
}

const startUntilReady = async (): Promise<Stack> => await run({}, [], READY)

async function failedStart(env: Record<string, string> = {}): Promise<{ code: number | null; stderr: string }> {
  const stack = await run(env)
  const { code } = await stack.exited
  return { code, stderr: stack.stderr }
}

async function readEnvFile(): Promise<NodeJS.Dict<string>> {
  return parseEnv(await readFile(join(localDir, 'env'), 'utf8'))
}

/** Everything in the log files. */
async function readLogs(): Promise<string> {
  const logs = join(localDir, 'logs')
  const texts = await Promise.all((await readdir(logs)).map(async (name) => await readFile(join(logs, name), 'utf8')))
  return texts.join('')
}

async function postgresPid(): Promise<number> {
  return Number.parseInt(await readFile(join(localDir, 'postgres', 'postmaster.pid'), 'utf8'), 10)
}

const wf = async (...args: string[]) => await runWf({ LOCAL_DIR: localDir }, args)

async function listRuns(): Promise<{ status: string }[]> {
  const { stdout } = await wf('runs', 'list', '--organization', DEMO_ORGANIZATION, '--json')
  return JSON.parse(stdout) as { status: string }[]
}

/** Runs the `wf` commands that the screen shows below "Runs" and "Deliveries". */
async function runHints(output: string): Promise<Awaited<ReturnType<typeof wf>>[]> {
  const hints = [...output.matchAll(/(?:Runs|Deliveries) +LOCAL_DIR=\S+ npm run -s wf -- (.+)\n/g)]
  return await Promise.all(
    hints.map(async ([, args = '']) =>
      wf(...[...args.matchAll(/"([^"]+)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')),
    ),
  )
}

/** Applies a manifest of this folder, edited, with an endpoint that answers "mine". */
async function applyEdited(file: string, edit: (manifest: string) => string): Promise<void> {
  await using endpoint = await startCustomerEndpoint({ answer: { body: 'mine' } })
  const path = join(folder, file)
  const manifest = edit(await readFile(join(import.meta.dirname, '..', file), 'utf8'))
  await writeFile(path, manifest.replace(/endpoint_url: .+/, `endpoint_url: ${endpoint.url}/orders`))
  expect(await wf('apply', '--yes', path)).toMatchObject({ exitStatus: 0 })
}

/** The demo with other names and no signing secret. */
const editDemo = (text: string): string =>
  text
    .replace('Acme (demo)', 'My shop')
    .replaceAll('Order intake', 'My intake')
    .replace(/api_keys:\n.+\n/, '')
    .replace(/signing_secret: .+/, 'signing_secret: null')

/** Does what the page behind the setup link does. */
async function becomeOwner(appUrl: string, token: string): Promise<unknown> {
  const [email, password] = ['owner@acme.test', 'seven calm turtles walk']
  return await got
    .post(`${appUrl}/app/setup`, {
      headers: { 'sec-fetch-site': 'same-origin' },
      json: { token, organization_name: 'ignored', name: 'Ada Lovelace', email, password },
    })
    .json()
}

async function stopRunning(stack: Stack): Promise<void> {
  stack.kill('SIGINT')
  await stack.exited
}

/** Sends the request of the printed curl command, and resolves to the status of its answer. */
async function startAgain(output: string): Promise<number> {
  const [, url = ''] = /curl -X POST (\S+)/.exec(output) ?? []
  const [, key = ''] = /Authorization: (Bearer wfk_\w+)/.exec(output) ?? []
  const [, body = ''] = /-d '(.*)'/.exec(output) ?? []
  const headers = { authorization: key, 'content-type': 'application/json' }
  return (await got.post(url, { body, headers, throwHttpErrors: false })).statusCode
}

/** Stops starts at two moments: no process and no temporary file may be left. */
async function stopWhileStarting(): Promise<void> {
  for (const line of ['✓ Loading', '✓ PostgreSQL']) {
    const stack = await run({ INTERRUPT_AT: line }, ['--import', interruptAt])
    // Exit status 130, which startProcess reports as the signal.
    expect([line, await stack.exited]).toEqual([line, { code: null, signal: 'SIGINT' }])
    expect(stack.stdout).toContain('nothing is left running')
    expect(existsSync(join(localDir, 'postgres', 'postmaster.pid'))).toBe(false)
    expect((await readdir(localDir)).filter((name) => name.includes('new'))).toEqual([])
  }
}

describe('npm start', () => {
  test('shows a start and its webhook, also after starts that were stopped at any moment, continues with its data after SIGKILL, and stops on Ctrl-C', async () => {
    await stopWhileStarting()
    const first = await startUntilReady()
    expect(first.stderr).toBe('')
    const output = first.stdout
    const inOrder = [
      '✓ PostgreSQL',
      '✓ Dispatcher',
      'POST http',
      '202 Accepted',
      '/orders',
      'authentic',
      '/setup#',
      'curl -X POST',
    ]
    const positions = inOrder.map((text) => output.indexOf(text))
    expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    expect(positions).not.toContain(-1)
    expect(output).not.toContain('\u001b')
    expect(output).toContain('"order_id": "A-1001"')
    expect(existsSync(join(localDir, '.gitignore'))).toBe(true)

    const saved = await readEnvFile()
    for (const file of ['env', 'logs/app.log', 'logs/postgres.log']) {
      expect([file, (await stat(join(localDir, file))).mode & 0o777]).toEqual([file, 0o600])
    }
    const [, token] = /X-Service-Token: (\S+)/i.exec(output) ?? []
    expect(await checkServiceToken(token, saved['DEMO_SIGNING_SECRET'] ?? '')).toMatchObject({ ok: true })
    // The webhook arrives before the run ends.
    await waitUntil(async () => (await listRuns())[0]?.status === 'succeeded')

    expect(await startAgain(output)).toBe(202)
    await waitUntil(() => first.stdout.includes('"order_id": "A-1002"'))
    expect(first.stdout).toContain('The endpoint of "Order intake" received another webhook')

    expect(await failedStart()).toEqual({
      code: 1,
      stderr: expect.stringContaining('npm start already runs in this folder: process'),
    })
    expect((await failedStart({ PORT: '0' })).stderr).toContain('npm start already runs in this folder: process')

    const [, appUrl = '', setupToken = ''] = /(http:\S+)\/setup#(\S+)/.exec(output) ?? []
    await waitUntil(async () => (await readLogs()).includes('service.started'))
    expect(await readLogs()).not.toContain('/setup#')
    expect(saved['APP_URL']).toBe(appUrl)
    expect(await becomeOwner(appUrl, setupToken)).toMatchObject({
      role: 'owner',
      organization: { name: 'Acme (demo)' },
    })

    // The file to which the screen leads.
    await applyEdited('your-own.yaml', (text) => text)
    expect(await runHints(output)).toMatchObject([
      { exitStatus: 0, stdout: expect.stringContaining('Forward orders'), stderr: '' },
      { exitStatus: 0, stdout: expect.stringContaining('Order A-1001 accepted.'), stderr: '' },
    ])
    await applyEdited('demo.yaml', editDemo)

    first.kill('SIGKILL')
    await first.exited
    const second = await startUntilReady()
    expect(second.stderr).toBe('')
    expect(second.stdout).not.toContain('202 Accepted')
    expect(second.stdout).toContain('Ready, with the data of the last time')
    expect(second.stdout).toContain(`The application: ${appUrl}\n`)
    expect(second.stdout).not.toContain('/setup#')
    expect(second.stdout).toContain('✓ Demo · unchanged')
    expect(await runHints(second.stdout)).toMatchObject([
      { exitStatus: 0, stdout: expect.stringContaining('Forward orders'), stderr: '' },
      { exitStatus: 0, stdout: expect.stringContaining('Order A-1001 accepted.'), stderr: '' },
    ])
    // The latest request to the webhook source verified the edited copy's endpoint. The demo's own answers 204.
    const { stdout: log } = await wf('logs', 'My intake', '--organization', 'My shop', '--json')
    expect((JSON.parse(log) as { status: number }[])[0]?.status).toBe(200)
    expect(await listRuns()).toHaveLength(2)
    expect(await readEnvFile()).toMatchObject({
      DEMO_API_KEY: saved['DEMO_API_KEY'],
      SECRETS_KEY: saved['SECRETS_KEY'],
    })

    const pid = await postgresPid()
    second.kill('SIGINT')
    expect(await second.exited).toMatchObject({ code: 0 })
    expect(second.stdout).toContain('Stopped.')
    expect(isAlive(pid)).toBe(false)
    expect(await wf('runs', 'list')).toMatchObject({
      exitStatus: 1,
      stderr: expect.stringContaining('Start the local stack with npm start.'),
    })
  }, 360_000)

  test('gives the demo its new secrets also if the start that made them was stopped before', async () => {
    await stopRunning(await startUntilReady())
    await rm(join(localDir, 'env'))
    const stopped = await run({ INTERRUPT_AT: '✓ Page' }, ['--import', interruptAt])
    await stopped.exited
    const { stdout } = await startUntilReady()
    expect(await startAgain(stdout)).toBe(202)
    await waitUntil(() => stacks.at(-1)!.stdout.includes('"order_id": "A-1002"'))
  }, 360_000)

  test('saves the webhook source of the demo at the next start if the first one could not', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`
    const first = await run({ WEBHOOK_EGRESS_PROXY: closed }, [], READY)
    expect(first.stdout).toContain('✓ Demo · left as it is:')
    await stopRunning(first)
    const second = await startUntilReady()
    expect(await startAgain(second.stdout)).toBe(202)
    await waitUntil(() => second.stdout.includes('"order_id": "A-1002"'))
  }, 360_000)

  test('does not make the demo anew that was deleted', async () => {
    const first = await startUntilReady()
    const url = (await readEnvFile())['DATABASE_URL'] ?? ''
    const db = createDatabase({ url, applicationName: 'test', maxConnections: 2 })
    const principal = { organizationId: DEMO_ORGANIZATION, userId: null, name: 'wf', address: null }
    await deleteOrganization(db, { principal, requestId: 'test' })
    while (await deleteOrganizationRows(db)) continue
    await db.close()
    await stopRunning(first)
    const second = await startUntilReady()
    expect(second.stdout).toContain('✓ Demo · unchanged')
    await stopRunning(second)
    // Also with new secrets.
    await rm(join(localDir, 'env'))
    expect((await startUntilReady()).stdout).not.toContain(DEMO_ORGANIZATION)
  }, 360_000)

  test('listens for the application where it did at the last start, not at the port of a proxy on this machine', async () => {
    const [appPort, proxyPort] = [await freePort(), await freePort()]
    const proxy = { APP_URL: `http://127.0.0.1:${proxyPort}` }
    await stopRunning(await run({ ...proxy, APP_PORT: String(appPort) }, [], READY))
    await run(proxy, [], READY)
    expect((await got(`http://127.0.0.1:${appPort}/healthz`, { retry: { limit: 0 } })).statusCode).toBe(200)
  }, 360_000)

  test('starts beside another one that starts at the same time', async () => {
    const second = { LOCAL_DIR: join(folder, '.local2'), PORT: String(await freePort()) }
    const both = await Promise.all([run({}, [], READY), run(second, [], READY)])
    const urls = both.map(({ stdout }) => /(http:\S+)\/setup#/.exec(stdout)?.[1])
    expect(new Set(urls).size).toBe(2)
  }, 360_000)

  test('says what to do when the port is taken, and creates no files', async () => {
    await using other = await startCustomerEndpoint({ port })
    const { code, stderr } = await failedStart()
    expect(code).toBe(1)
    expect(stderr).toContain(`Another program uses port ${other.port}. Stop that program, or`)
    expect(stderr).toMatch(/use another port: LOCAL_DIR=\S+ PORT=\d+ npm start/)
    expect(existsSync(localDir)).toBe(false)
  })

  test("says why the demo's run has failed, as soon as it has", async () => {
    await using model = await startCustomerEndpoint({ answer: { status: 401, body: '{}' } })
    const settings = { AGENT_MODEL: 'openai-compatible:x', AGENT_BASE_URL: model.url, AGENT_API_KEY: 'a wrong key' }
    const stack = await run({ ...settings, APP_URL: 'https://workflows.example.com', HOST: '0.0.0.0' }, [], READY)
    expect(stack.stdout).toMatch(/The demo's run failed: model_unauthorized: .* the service's model is not available/)
    expect(stack.stdout).toMatch(/All that happened: LOCAL_DIR=\S+ npm run -s wf -- runs show [0-9a-f-]{36}\n/)
    expect(stack.stdout).toContain('https://workflows.example.com/setup#')
    expect(stack.stdout).toContain('Not used, because npm start sets its own: HOST\n')
    stack.kill('SIGTERM')
    expect(await stack.exited).toMatchObject({ code: 0 })
  })

  test('names every invalid setting before anything is started', async () => {
    const { code, stderr } = await failedStart({ AGENT_MODEL: 'gpt', DELIVERY_LOG_RETENTION_DAYS: 'ten' })
    expect(code).toBe(1)
    expect(stderr).toContain('DELIVERY_LOG_RETENTION_DAYS must be a whole number')
    expect(stderr).toMatch(/AGENT_MODEL must .*Example: AGENT_MODEL=/)
    expect(existsSync(localDir)).toBe(false)
  })
})
