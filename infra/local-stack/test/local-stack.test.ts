import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { freePort, startProcess, waitUntil } from '@workflow-service/testkit'
import got from 'got'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { wf } from './support/wf.ts'

const main = join(import.meta.dirname, '../src/main.ts')
const interruptAt = new URL('support/interrupt-at.ts', import.meta.url).href
/** A boot makes a PostgreSQL data folder, which on a busy machine takes a while. */
const BOOT_MS = 120_000
const READY = 'Ctrl-C'

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
}, BOOT_MS)

/** Starts it and waits for a line of its output. */
async function start(line: string, env: Record<string, string> = {}): Promise<Stack> {
  const stack = await startProcess({
    args: [main],
    env: { LOCAL_DIR: localDir, PORT: String(port), ...env },
    readyWhen: { line: new RegExp(line) },
    timeoutMs: BOOT_MS,
  })
  stacks.push(stack)
  return stack
}

async function refusal(env: Record<string, string> = {}): Promise<{ code: number | null; stderr: string }> {
  const stack = await startProcess({ args: [main], env: { LOCAL_DIR: localDir, PORT: String(port), ...env } })
  stacks.push(stack)
  const { code } = await stack.exited
  return { code, stderr: stack.stderr }
}

async function settings(): Promise<NodeJS.Dict<string>> {
  return parseEnv(await readFile(join(localDir, 'env'), 'utf8'))
}

async function postgresPid(): Promise<number> {
  return Number.parseInt(await readFile(join(localDir, 'postgres', 'postmaster.pid'), 'utf8'), 10)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const runs = async () => JSON.parse((await wf(localDir, 'runs', 'list', '--json')).stdout) as { status: string }[]

describe('npm start', () => {
  test(
    'shows a start and the webhook that it led to, and goes on where it was left the next time',
    async () => {
      const first = await start(READY)
      expect(first.stderr).toBe('')
      const shown = first.stdout
      const steps = [
        '✓ PostgreSQL',
        '✓ Dispatcher',
        'POST http',
        '202 Accepted',
        '/orders',
        'authentic',
        'curl -X POST',
      ]
      const places = steps.map((step) => shown.indexOf(step))
      expect(places).toEqual(places.toSorted((a, b) => a - b))
      expect(places).not.toContain(-1)
      expect(shown).not.toContain('\u001b')
      expect(shown).toContain('"order_id": "A-1001"')

      const made = await settings()
      expect((await stat(join(localDir, 'env'))).mode & 0o777).toBe(0o600)
      const [, token] = /X-Service-Token: (\S+)/i.exec(shown) ?? []
      expect(checkServiceToken(token, made['DEMO_SIGNING_SECRET'] ?? '')).toMatchObject({ ok: true })
      expect(await runs()).toMatchObject([{ status: 'succeeded' }])

      // The curl line, as whoever pastes it has it.
      const [, url = ''] = /curl -X POST (\S+)/.exec(shown) ?? []
      const [, key = ''] = /Authorization: (Bearer wfk_\w+)/.exec(shown) ?? []
      const [, body = ''] = /-d '(.*)'/.exec(shown) ?? []
      await got.post(url, { body, headers: { authorization: key, 'content-type': 'application/json' } })
      await waitUntil(() => first.stdout.includes('"order_id": "A-1002"'))
      expect(first.stdout).toContain('Another webhook reached "Order intake"')

      expect(await refusal()).toEqual({ code: 1, stderr: expect.stringContaining('It runs already, as process') })
      expect((await refusal({ PORT: '0' })).stderr).toContain('It runs already, as process')

      const pid = await postgresPid()
      first.kill('SIGINT')
      expect(await first.exited).toMatchObject({ code: 0 })
      expect(first.stdout).toContain('Stopped.')
      expect(isAlive(pid)).toBe(false)
      expect(await wf(localDir, 'runs', 'list')).toMatchObject({
        exitStatus: 1,
        stderr: expect.stringContaining('Start the local stack with npm start.'),
      })

      const second = await start(READY)
      expect(second.stdout).not.toContain('202 Accepted')
      expect(second.stdout).toContain('Ready, with the data of before')
      expect(await runs()).toHaveLength(2)
      const { DEMO_API_KEY, SECRETS_KEY } = await settings()
      expect({ DEMO_API_KEY, SECRETS_KEY }).toEqual({
        DEMO_API_KEY: made['DEMO_API_KEY'],
        SECRETS_KEY: made['SECRETS_KEY'],
      })

      // Killed without a chance to stop anything: the next start takes over.
      second.kill('SIGKILL')
      await second.exited
      const third = await start(READY)
      expect(third.stderr).toBe('')
      expect(await runs()).toHaveLength(2)
      third.kill('SIGTERM')
      expect(await third.exited).toMatchObject({ code: 0 })
    },
    4 * BOOT_MS,
  )

  test.each(['✓ Loading', '✓ PostgreSQL'])(
    'stopped after "%s" leaves nothing running or half made, and the next start is whole',
    async (line) => {
      const stack = await startProcess({
        args: ['--import', interruptAt, main],
        env: { LOCAL_DIR: localDir, PORT: String(port), INTERRUPT_AT: line },
      })
      stacks.push(stack)
      // Exit status 130, which a shell takes for the signal.
      expect(await stack.exited).toMatchObject({ signal: 'SIGINT' })
      expect(stack.stdout).toContain('nothing is left running')
      expect(existsSync(join(localDir, 'postgres', 'postmaster.pid'))).toBe(false)
      expect((await readdir(localDir)).filter((name) => name.includes('new'))).toEqual([])
      const whole = await start(READY)
      expect(whole.stdout).toContain('202 Accepted')
    },
    3 * BOOT_MS,
  )

  test('says what to do when the port is taken, and makes nothing', async () => {
    const other = createServer().listen(port, '127.0.0.1')
    try {
      const { code, stderr } = await refusal()
      expect(code).toBe(1)
      expect(stderr).toContain(`Port ${port} is taken by another program: stop that one, or take another port: PORT=`)
      expect(existsSync(localDir)).toBe(false)
    } finally {
      other.close()
    }
  })

  test('names every setting that is wrong before anything is started', async () => {
    const { code, stderr } = await refusal({ AGENT_MODEL: 'gpt' })
    expect(code).toBe(1)
    expect(stderr).toMatch(/AGENT_MODEL must .*Example: AGENT_MODEL=/)
    expect(existsSync(localDir)).toBe(false)
  })
})
