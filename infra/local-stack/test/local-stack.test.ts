import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { isAlive, listenError } from '@workflow-service/dev-servers'
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

/** Sends the request of the printed curl command, and resolves to the status of its response. */
async function startAgain(output: string): Promise<number> {
  const [, url = ''] = /curl -X POST (\S+)/.exec(output) ?? []
  const [, key = ''] = /Authorization: (Bearer wfk_\w+)/.exec(output) ?? []
  const [, body = ''] = /-d '(.*)'/.exec(output) ?? []
  const headers = { authorization: key, 'content-type': 'application/json' }
  return (await got.post(url, { body, headers, throwHttpErrors: false })).statusCode
}

/** Stops a start once it has written this line: no process and no temporary file may be left. */
async function stopAt(line: string): Promise<void> {
  const stack = await run({ INTERRUPT_AT: line }, ['--import', interruptAt])
  // Exit status 130, which startProcess reports as the signal.
  expect([line, await stack.exited]).toEqual([line, { code: null, signal: 'SIGINT' }])
  expect(stack.stdout).toContain('nothing is left running')
  expect(existsSync(join(localDir, 'postgres', 'postmaster.pid'))).toBe(false)
  expect((await readdir(localDir)).filter((name) => name.includes('new'))).toEqual([])
}

describe('npm start', () => {
  test('shows a start and its webhook, also after starts that were stopped at any moment, continues with its data after SIGKILL, stops on Ctrl-C, and gives the demo new secrets when its file was lost', async () => {
    for (const line of ['✓ Loading', '✓ PostgreSQL']) await stopAt(line)
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
    // One that began before the first had saved its settings.
    const env = join(localDir, 'env')
    await rename(env, `${env}.later`)
    const late = await run({ PORT: '0', HOST: '0.0.0.0' }, [], 'Not used')
    await rename(`${env}.later`, env)
    expect(await late.exited).toMatchObject({ code: 1 })
    expect(late.stderr).toContain('npm start already runs in this folder: process')

    const [, appUrl = '', setupToken = ''] = /(http:\S+)\/setup#(\S+)/.exec(output) ?? []
    await waitUntil(async () => (await readLogs()).includes('service.started'))
    expect(await readLogs()).not.toContain('/setup#')
    expect(saved).toMatchObject({ APP_URL: appUrl, APP_PORT: URL.parse(appUrl)?.port })
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

    // New secrets reach the demo, also after a start that was stopped between.
    await rm(env)
    await stopAt('✓ Page')
    const third = await startUntilReady()
    expect(await startAgain(third.stdout)).toBe(202)
  }, 360_000)

  test('says what to do when the port is taken, and creates no files', async () => {
    await using other = await startCustomerEndpoint({ port })
    const { code, stderr } = await failedStart()
    expect(code).toBe(1)
    expect(stderr).toContain(`Another program uses port ${other.port}. Stop that program, or`)
    expect(stderr).toMatch(/use another port: LOCAL_DIR=\S+ PORT=\d+ npm start/)
    expect(existsSync(localDir)).toBe(false)
  })

  test("holds the port of the application from its beginning, and says why the demo's run has failed, as soon as it has", async () => {
    await using model = await startCustomerEndpoint({ answer: { status: 401, body: '{}' } })
    const settings = { AGENT_MODEL: 'openai-compatible:x', AGENT_BASE_URL: model.url, AGENT_API_KEY: 'a wrong key' }
    const appPort = await freePort()
    const app = { APP_PORT: String(appPort), APP_URL: 'https://workflows.example.com' }
    const stack = await run({ ...settings, ...app, HOST: '0.0.0.0' }, [], '✓ PostgreSQL')
    // Another start, with a folder of its own, may choose its port now.
    expect(await listenError(appPort)).toMatchObject({ code: 'EADDRINUSE' })
    await waitUntil(() => stack.stdout.includes(READY), { timeoutMs: START_MS })
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
