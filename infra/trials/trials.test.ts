import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { close, listen, type PrivateRabbitMq, startProcess, startRabbitMq, waitUntil } from '@workflow-service/testkit'
import { runAttack } from './attack/run-attack.ts'
import { type AttackTarget, startAttackTarget } from './attack/target.ts'
import { ATTACKS } from './attack/trial.ts'
import { runBackupTrial, SMALL } from './backup/trial.ts'
import { toFigureTable } from './bench/figure.ts'
import { measureLatency } from './bench/parts/runs.ts'
import { forward } from './cells/router.ts'
import { runCells } from './cells/trial.ts'
import { runChaos } from './chaos/trial.ts'
import { tryDatabaseFailover } from './cluster/trial.ts'
import { tryService } from './image/trial.ts'
import type { Proxy, startHaproxy } from './rollout/start-haproxy.ts'
import { runRollout } from './rollout/trial.ts'
import { runSoak } from './soak/trial.ts'

// One broker for all trials: starting one takes as long as the rest of a small trial.
let broker: PrivateRabbitMq
let rabbitMq: PrivateRabbitMq
beforeAll(async () => {
  broker = await startRabbitMq()
  rabbitMq = { ...broker, stop: async () => {} }
}, 150_000)
afterAll(() => broker.stop())

const TIMEOUT_MS = 300_000

describe('a small trial keeps every promise', () => {
  test(
    'chaos: random parts are killed under load',
    async () => {
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
        rabbitMq,
        log: (line) => log(`chaos ${line}`),
      })
      expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] })
      expect(report.incidents).toBeGreaterThan(0)
      expect(report.succeeded).toBeGreaterThan(0)
    },
    TIMEOUT_MS,
  )

  test(
    'backup: a backup that was taken under load is restored, with runner and dispatcher in one process',
    async () => {
      const until = 'end of the backup'
      expect(await runBackupTrial({ until, ...SMALL, rabbitMq, log })).toEqual([])
    },
    TIMEOUT_MS,
  )

  test(
    'cells: an organization moves to another installation under load',
    async () => {
      expect(await runCells({ seconds: 0.5, rabbitMq, log })).toEqual([])
    },
    TIMEOUT_MS,
  )

  test(
    'cluster: a standby takes over from its primary',
    async () => {
      expect(await tryDatabaseFailover(log, { phaseMs: 500, processes: 1, rabbitMq })).toEqual([])
    },
    TIMEOUT_MS,
  )

  test(
    'rollout: a gateway is restarted behind a proxy',
    async () => {
      const report = await runRollout({
        // A busy machine takes a second to notice that a gateway stops.
        delaySeconds: 3,
        services: ['gateway'],
        startProxy: startSmallProxy,
        pauseMs: 100,
        rabbitMq,
        log,
      })
      expect(report.violations).toEqual([])
      expect(report.text).toContain('2 restarts')
    },
    TIMEOUT_MS,
  )

  test(
    'soak: incidents, samples and tables',
    async () => {
      const output = await mkdtemp(join(tmpdir(), 'soak-'))
      const { violations, record } = await runSoak({
        hours: 3 / 3_600,
        rate: 8,
        incidentSeconds: 1,
        output,
        rabbitMq,
        log,
      })
      expect(violations).toEqual([])
      expect(record.starts.length).toBeGreaterThan(10)
      expect(record.samples.length).toBeGreaterThan(1)
      expect(Object.values(record.samples[0]!.figures).filter((mib) => !(mib > 0))).toEqual([])
      expect(await readFile(join(output, 'soak.md'), 'utf8')).toContain('| gateway, memory')
      await rm(output, { recursive: true })
    },
    TIMEOUT_MS,
  )

  test(
    'bench: the latency of a start, and the CPU time that its run takes',
    async () => {
      const options = { rounds: 1, seconds: 1, largeTable: 1, rows: 1, compact: false, log }
      const figures = await measureLatency(options, { startsPerRound: 5, warmsUp: false, rabbitMq })
      expect(toFigureTable(figures)).toMatch(/^\| start → endpoint, p50 +\| [\d.,]+ ms/m)
      expect(figures.filter(({ value, baseline }) => !(value >= 0 && baseline.value > 0))).toEqual([])
    },
    TIMEOUT_MS,
  )

  test(
    'image: what runs in the container runs here',
    async () => {
      const root = join(import.meta.dirname, '../..')
      const container = {
        passesSignals: true,
        run: (args: readonly string[], env = {}) => ({
          command: '/usr/bin/env',
          args: [
            ...Object.entries(env).map(([name, value]) => `${name}=${String(value)}`),
            '/bin/sh',
            '-c',
            'cd "$0" && exec "$@"',
            root,
            ...args,
          ],
        }),
        [Symbol.asyncDispose]: async () => {},
      }
      await expect(tryService(container, { hasPage: false, rabbitMq, log })).resolves.toBeUndefined()
    },
    TIMEOUT_MS,
  )
})

describe('an attack', () => {
  let target: AttackTarget
  beforeAll(async () => {
    target = await startAttackTarget({}, { rabbitMq })
  }, 120_000)
  afterAll(() => target.close())

  // Of the application and the runs, those that end within seconds.
  test.each(['app-large-edits', 'app-cut-bodies', 'long-example-list'])(
    '%s ends no process, and takes no response or payload from another organization',
    async (name) => {
      const attack = ATTACKS.find((each) => each.name === name)!
      const { violations } = await runAttack(target, attack, { seconds: 0.5, loadMs: 100, findsDelays: false })
      expect(violations).toEqual([])
    },
    60_000,
  )
})

test('pnpm trial lists the trials, and refuses a wrong name', async () => {
  const { exited, ...ended } = await startProcess({ args: [join(import.meta.dirname, 'main.ts'), 'nothing'] })
  expect((await exited).code).toBe(2)
  expect(ended.stdout).toBe('')
})

/**
 * A proxy like HAProxy's in `start-haproxy.ts`, which need not be installed for it: to the first server that is ready.
 */
async function startSmallProxy(services: Parameters<typeof startHaproxy>[0]): Promise<Proxy> {
  const ready = new Map<number, boolean>()
  const servers = Object.values(services).flat()
  const stopping = new AbortController()
  const check = async (): Promise<void> => {
    const checks = servers.map(async ({ port, checkPort }) => {
      const response = await fetch(`http://127.0.0.1:${checkPort}/readyz`).catch(() => undefined)
      ready.set(port, response?.status === 200)
    })
    await Promise.all(checks)
  }
  const checking = (async () => {
    for (; !stopping.signal.aborted; await pause(100)) await check()
  })()
  const urls: Record<string, string> = {}
  const proxies: Server[] = []
  for (const [name, behind] of Object.entries(services)) {
    const proxy = createServer((req, res) => {
      forward(req, res, `http://127.0.0.1:${behind.find(({ port }) => ready.get(port))?.port ?? 1}`)
    })
    urls[name] = `http://127.0.0.1:${await listen(proxy)}`
    proxies.push(proxy)
  }
  return {
    urls,
    log: '',
    waitUntilUp: async (name) => {
      await waitUntil(() => services[name]?.every(({ port }) => ready.get(port)), { timeoutMs: 60_000 })
    },
    async stop() {
      stopping.abort()
      await checking
      await Promise.all(proxies.map(close))
    },
  }
}

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}
