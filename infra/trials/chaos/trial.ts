import { randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { RunnerTiming } from '@workflow-service/runner'
import { startRabbitMq, waitUntil } from '@workflow-service/testkit'
import type { Pool } from 'pg'
import { type Callers, checkCallers, describeFindings, startCallers, untilAllEnded } from '../shared/callers.ts'
import { createCustomer } from '../shared/customers.ts'
import { defineTrial, type TrialOptions } from '../shared/define-trial.ts'
import { percentile, secondsSince, tally } from '../shared/figures.ts'
import { causeIncidents, type Incident, PAUSED_MS } from '../shared/incidents.ts'
import { createRandom } from '../shared/random.ts'
import { hash } from '../shared/receiver.ts'
import { type Killable, startSystem } from '../shared/system.ts'

export const trial = defineTrial({
  summary: 'kills and pauses random parts of the service under load, and checks every guarantee of each start',
  options: {
    minutes: ['how long load and incidents last', 5],
    seed: ['the same seed gives the same incidents', randomInt(2 ** 31)],
    callers: ['how many callers start workflows', 8],
    compact: ['runner and dispatcher in one process', false],
    output: ['write the log lines of all services to this file', ''],
  },
  async run({ options: { minutes, seed, callers, compact, output }, log }) {
    const report = await runChaos({ seed, seconds: minutes * 60, callers, compact, log })
    if (output !== '') await writeFile(output, report.output)
    return report.violations
  },
})

export interface ChaosOptions extends TrialOptions {
  /** The same seed gives the same incidents and callers; timing still differs from machine to machine. */
  readonly seed: number
  /** The duration of load and incidents. Starting the parts, and waiting for all runs to end, come on top. */
  readonly seconds: number
  readonly callers: number
  /** Default false. */
  readonly compact?: boolean
  /** The runners' intervals; by default those of production. */
  readonly timing?: Partial<RunnerTiming>
  /** The shortest and the longest time between two incidents. Default 0.3 to 2.5 s. */
  readonly calmMs?: readonly [number, number]
  /** The shortest and the longest pause of a part: the longest exceeds a lease. Default 0.5 to 8 s. */
  readonly pausedMs?: readonly [number, number]
}

/** A kill of PostgreSQL keeps what was written, also without fsync. */
const POSTGRES_SETTINGS = { fsync: 'off', full_page_writes: 'off' }
/** Programs that start a service as its `main.ts` does, with other intervals. */
const COMPACT_PROCESS = fileURLToPath(import.meta.resolve('./compact-process.ts'))
const PROGRAMS = fileURLToPath(new URL('../../../services/runner/test/support/', import.meta.url))

/** Runs the whole service under load, kills random parts of it, and checks the guarantees on the records. */
export async function runChaos(options: ChaosOptions) {
  const { seed, seconds, callers, compact = false, timing = {}, calmMs, pausedMs = PAUSED_MS } = options
  const beganMs = performance.now()
  const log = (line: string): void => options.log(`${secondsSince(beganMs).padStart(6)} s  ${line}`)
  log(`seed ${seed}`)
  const rabbitMq = options.rabbitMq ?? (await startRabbitMq())
  await using system = await startSystem({
    postgresSettings: POSTGRES_SETTINGS,
    rabbitMq,
    openDatabase: options.openDatabase,
    env: { LOG_LEVEL: 'info' },
    // Mostly quick, sometimes slow enough for a part to be killed meanwhile.
    answer: ({ text }) => ({ status: 204, delayMs: hash(text) % 30 === 0 ? 1_500 : hash(text) % 100 }),
  })
  const { pool, postgres } = system
  log('starting the services')
  // A delivery whose dispatcher was killed becomes `unknown` after this time instead of 40 s. Longer than a dispatcher
  // can take here: two pauses, and an endpoint that answers within 1.5 s.
  const deliveryDeadlineMs = 2 * pausedMs[1] + 4_000
  const overrides = JSON.stringify({ dispatcher: { deliveryDeadlineMs }, runner: { timing } })
  const both = { program: [COMPACT_PROCESS, overrides] }
  const runner = { program: [`${PROGRAMS}runner-process.ts`, JSON.stringify(timing)] }
  const dispatcher = compact
    ? await system.start('compact', both)
    : await system.start('dispatcher', {
        program: [`${PROGRAMS}dispatcher-process.ts`, String(deliveryDeadlineMs)],
      })
  const [gateway, ...runners] = await Promise.all([
    system.start('gateway'),
    ...(compact ? [system.start('compact', both)] : [system.start('runner', runner), system.start('runner', runner)]),
  ])
  const customer = await createCustomer(system, ['/orders', '/audit'])
  const pauses = { pauseMs: [50, 600], seed: seed + 1 } as const
  const load = [startCallers(system, customer, { ...pauses, callers })]
  const incidents: Incident[] = []
  await causeIncidents({
    parts: [
      ...runners.map((each, index) => ({ ...each, name: `${each.name} ${index + 1}` })),
      gateway,
      dispatcher,
      { ...postgres, name: 'postgres' },
      { ...rabbitMq, name: 'rabbitmq' },
    ],
    random: createRandom(seed),
    untilMs: performance.now() + seconds * 1_000,
    calmMs,
    pausedMs,
    log,
    incidents,
  })
  if (!compact) {
    // Its runs wait for the dispatcher, so that their times are not those of a kill alone.
    incidents.push({ name: 'dispatcher', isPause: true, beganAt: Date.now(), endedAt: Infinity })
    const newcomer = { ...pauses, callers: 1, name: 'newcomer ', startsPerSession: 1 }
    load.push(await interruptBeforeClaim(pool, dispatcher, runners, () => startCallers(system, customer, newcomer)))
  }
  log(`${incidents.length} incidents; every part is up again`)
  await pause(1_000)
  await Promise.all(load.map((each) => each.stop()))
  log(`${load.flatMap(({ requested }) => requested).length} starts requested; waiting for all runs to end`)
  /** The log lines of all services. */
  const output = (): string => system.services.map((each) => each.output()).join('\n')
  await untilAllEnded(system).catch((error: unknown) => {
    throw new Error(`Seed ${seed}: ${String(error)}\n${output()}`)
  })
  log(await describeTakeOvers(pool, incidents))
  const findings = await checkCallers(system, load)
  log(describeFindings(findings))
  return { ...findings, incidents: incidents.length, output: output() }
}

/**
 * Kills the runners while a run waits for the dispatcher with its plan in memory, which random incidents rarely do. The
 * dispatcher gets the dead runner's request when another one has the lease. Returns a caller that still requests
 * starts: the sessions of the others can all have a payload that is claimed and not sent, a new session cannot.
 */
async function interruptBeforeClaim(
  pool: Pool,
  dispatcher: Killable,
  runners: readonly Killable[],
  startNewcomer: () => Callers,
): Promise<Callers> {
  const findWaiting = async (id: string | null): Promise<string | undefined> => {
    const { rows } = await pool.query<{ id: string }>(
      `SELECT id FROM starts WHERE status = 'running' AND started_at < clock_timestamp() - interval '300 milliseconds'
         AND id = coalesce($1, id) AND NOT EXISTS (SELECT FROM run_steps WHERE run_id = starts.id) LIMIT 1`,
      [id],
    )
    return rows[0]?.id
  }
  const options = { timeoutMs: 60_000, intervalMs: 50, message: 'a run before its claim' }
  dispatcher.pause()
  const newcomer = startNewcomer()
  let waiting: string | undefined
  await waitUntil(async () => (waiting = await findWaiting(null)) !== undefined, options)
  for (const runner of runners) await runner.kill('SIGKILL')
  await Promise.all(runners.map((runner) => runner.restart()))
  await waitUntil(async () => (await findWaiting(waiting!)) === undefined, options)
  dispatcher.resume()
  return newcomer
}

/**
 * Describes how long runs waited for another runner after their runner was killed, and where in their journal they were
 * interrupted. Times count only if nothing else was hit meanwhile.
 */
async function describeTakeOvers(pool: Pool, incidents: readonly Incident[]): Promise<string> {
  const { rows } = await pool.query<{ at: Date; point: string }>(
    `SELECT note.created_at AS at, CASE earlier.kind WHEN 'tool_call' THEN 'between claim and outcome'
         WHEN 'tool_result' THEN 'after an outcome' ELSE 'before the first claim' END AS point
     FROM run_steps AS note
     LEFT JOIN LATERAL (
       SELECT kind FROM run_steps
       WHERE run_id = note.run_id AND position < note.position AND kind <> 'note' ORDER BY position DESC LIMIT 1
     ) AS earlier ON true
     WHERE note.kind = 'note' AND note.data ->> 'code' = 'taken_up_again' ORDER BY point`,
  )
  const waitedMs = rows.flatMap(({ at }) => {
    const continuedAt = at.getTime()
    const last = incidents.findLast(({ beganAt }) => beganAt < continuedAt)
    if (!last || last.isPause || !/^(runner|compact) /.test(last.name)) return []
    const isAlone = incidents.every(
      (each) => each === last || each.beganAt > continuedAt || each.endedAt < last.beganAt,
    )
    return isAlone ? continuedAt - last.beganAt : []
  })
  const [p50, p95, max] = [0.5, 0.95, 1].map((share) => `${Math.round(percentile(waitedMs, share))} ms`)
  const times = waitedMs.length === 0 ? '' : `after p50 ${p50}, p95 ${p95}, longest ${max} `
  return (
    `runs of a runner that was killed alone continued ${times}(${waitedMs.length} of ${rows.length}); ` +
    `interrupted: ${tally(rows.map(({ point }) => point)) || 'none'}`
  )
}
