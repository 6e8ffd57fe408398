import { randomInt } from 'node:crypto'
import { createServer } from 'node:http'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { migrate } from '@workflow-service/database'
import {
  cloneDatabase,
  close,
  listen,
  type PrivatePostgres,
  type PrivateRabbitMq,
  startPostgres,
  startProcess,
  startRabbitMq,
  waitUntil,
} from '@workflow-service/testkit'
import { type AttackTarget, startAttackTarget } from './attack/target.ts'
import { ATTACKS, runAttack } from './attack/trial.ts'
import { runBackupTrial, SMALL } from './backup/trial.ts'
import { toFigureTable } from './bench/figure.ts'
import { measureLatency } from './bench/parts/runs.ts'
import { forward } from './cells/router.ts'
import { runCells } from './cells/trial.ts'
import { runChaos } from './chaos/trial.ts'
import { tryDatabaseFailover } from './cluster/trial.ts'
import { tryService } from './image/trial.ts'
import type { TrialOptions } from './shared/define-trial.ts'
import type { ProxiedServer, Proxy, startHaproxy } from './rollout/start-haproxy.ts'
import { runRollout } from './rollout/trial.ts'
import { runSoak } from './soak/trial.ts'

// Servers for all trials, which may kill them: starting one takes as long as the rest of a small trial.
let broker: PrivateRabbitMq
let database: PrivatePostgres
let shared: TrialOptions
beforeAll(async () => {
  ;[broker, database] = await Promise.all([startRabbitMq(), startPostgres()])
  shared = { rabbitMq: { ...broker, stop: async () => {} }, openDatabase, log }
  await migrate({ databaseUrl: database.url })
})
afterAll(() => Promise.all([broker.stop(), database.stop()]))

/** Gives each trial a database of its own. */
async function openDatabase(): Promise<PrivatePostgres> {
  const { url, drop } = await cloneDatabase({ adminUrl: database.adminUrl, templateUrl: database.url })
  return { ...database, url, stop: drop }
}

describe('a small trial keeps every promise', () => {
  test('chaos: random parts are killed under load', async () => {
    // The test prints the seed; `pnpm trial chaos --seed N` uses the same incidents.
    const seed = randomInt(2 ** 31)
    const report = await runChaos({
      seed,
      seconds: 2,
      callers: 4,
      // Shorter than those of `pnpm trial chaos`, in the same proportions: more incidents in less time.
      timing: { leaseMs: 2_000, renewMs: 500, sweepMs: 500 },
      calmMs: [100, 800],
      pausedMs: [500, 4_000],
      ...shared,
      log: (line) => log(`chaos ${line}`),
    })
    expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] })
    expect(report.incidents).toBeGreaterThan(0)
    expect(report.succeeded).toBeGreaterThan(0)
  })

  test.each<[promise: string, run: () => Promise<readonly string[]>]>([
    [
      'backup: a backup that was taken under load is restored, with runner and dispatcher in one process',
      () => runBackupTrial({ until: 'end of the backup', ...SMALL, ...shared }),
    ],
    ['cells: an organization moves to another installation under load', () => runCells({ seconds: 0.5, ...shared })],
    [
      'cluster: a standby takes over from its primary',
      () => tryDatabaseFailover({ phaseMs: 500, processes: ['compact', 'gateway'], ...shared }),
    ],
  ])('%s', async (_promise, run) => {
    expect(await run()).toEqual([])
  })

  test('rollout: a gateway is restarted behind a proxy', async () => {
    const report = await runRollout({
      delaySeconds: 1,
      services: ['gateway'],
      startProxy: startSmallProxy,
      pauseMs: 100,
      ...shared,
    })
    expect(report.violations).toEqual([])
    expect(report.text).toContain('2 restarts')
  })

  test('soak: incidents, samples and tables', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'soak-'))
    const { path: output } = folder
    const options = { hours: 3 / 3_600, rate: 8, incidentSeconds: 1, output, ...shared }
    const { violations, record } = await runSoak(options)
    expect(violations).toEqual([])
    expect(record.starts.length).toBeGreaterThan(10)
    expect(record.samples.length).toBeGreaterThan(1)
    expect(Object.values(record.samples[0]!.figures).filter((mib) => !(mib > 0))).toEqual([])
    expect(await readFile(join(output, 'soak.md'), 'utf8')).toContain('| gateway, memory')
  })

  test('bench: the latency of a start, and the CPU time that its run takes', async () => {
    const options = { rounds: 1, seconds: 1, largeTable: 1, rows: 1, compact: true, log }
    const figures = await measureLatency(options, { startsPerRound: 5, warmsUp: false, ...shared })
    expect(toFigureTable(figures)).toMatch(/^\| start → endpoint, p50 +\| [\d.,]+ ms/m)
    expect(figures.filter(({ value, baseline }) => !(value >= 0 && baseline.value > 0))).toEqual([])
  })

  test('image: what runs in the container runs here', async () => {
    const root = join(import.meta.dirname, '../..')
    const container = {
      passesSignals: true,
      run: (args: readonly string[], env: Readonly<Record<string, string>> = {}) => ({
        command: '/usr/bin/env',
        args: ['--chdir', root, ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...args],
      }),
      [Symbol.asyncDispose]: async () => {},
    }
    await expect(tryService(container, { hasPage: false, ...shared })).resolves.toBeUndefined()
  })
})

describe('an attack', () => {
  let target: AttackTarget
  beforeAll(async () => {
    target = await startAttackTarget({}, shared)
  })
  afterAll(() => target[Symbol.asyncDispose]())

  // Of the application and the runs, those that end within seconds.
  test.each(['app-large-edits', 'app-cut-bodies', 'long-example-list'])(
    '%s ends no process, and takes no response or payload from another organization',
    async (name) => {
      const attack = ATTACKS.find((each) => each.name === name)!
      const { violations } = await runAttack(target, attack, { seconds: 0.5, loadMs: 100, findsDelays: false })
      expect(violations).toEqual([])
    },
  )
})

test('bench: the server of the baselines checks a start', async () => {
  const server = await startProcess({
    args: [join(import.meta.dirname, 'bench/baseline-server.ts')],
    readyWhen: { line: 'listening' },
  })
  const { 1: port } = /listening (\d+)/.exec(server.stdout) ?? []
  const start = (body: object) =>
    fetch(`http://127.0.0.1:${port}/start`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  expect([(await start({ context: 'text' })).status, (await start({})).status]).toEqual([202, 422])
  await server.stop()
})

test('pnpm trial lists the trials, and refuses a wrong name', async () => {
  const { exited, ...ended } = await startProcess({ args: [join(import.meta.dirname, 'main.ts'), 'nothing'] })
  expect((await exited).code).toBe(2)
  expect(ended.stdout).toBe('')
})

/** Less than the services' SHUTDOWN_DELAY_SECONDS. */
const CHECK_INTERVAL_MS = 200

/**
 * A proxy like HAProxy's in `start-haproxy.ts`, which need not be installed for it: to the first server that is ready.
 */
async function startSmallProxy(services: Parameters<typeof startHaproxy>[0]): Promise<Proxy> {
  const stack = new AsyncDisposableStack()
  const urls: Record<string, string> = {}
  for (const [name, servers] of Object.entries(services)) {
    let checkedMs = -Infinity
    let checks: Promise<boolean[]>
    const proxy = createServer((incoming, outgoing) => {
      if (performance.now() > checkedMs + CHECK_INTERVAL_MS) {
        checkedMs = performance.now()
        checks = Promise.all(servers.map(isReady))
      }
      void checks.then((ready) =>
        forward(incoming, outgoing, `http://127.0.0.1:${servers[ready.indexOf(true)]?.port ?? 1}`),
      )
    })
    urls[name] = `http://127.0.0.1:${await listen(proxy)}`
    stack.defer(() => close(proxy))
  }
  return {
    urls,
    log: '',
    waitUntilUp: async (name) => {
      const areUp = async () => (await Promise.all(services[name]!.map(isReady))).every(Boolean)
      await waitUntil(areUp, { timeoutMs: 60_000 })
    },
    stop: () => stack.disposeAsync(),
  }
}

async function isReady({ checkPort }: ProxiedServer): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${checkPort}/readyz`).catch(() => undefined))?.ok === true
}

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}
