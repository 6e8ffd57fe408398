import { randomInt } from 'node:crypto'
import { mkdir, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@workflow-service/testkit'
import { checkRecord } from '../../../services/runner/test/chaos/check-record.ts'
import { causeIncidents } from '../../../services/runner/test/chaos/incidents.ts'
import { createRandom } from '../../../services/runner/test/chaos/random.ts'
import { drawSoak } from './draw-soak.ts'
import type { TimedArrival } from './soak-endpoint.ts'
import { type SoakLoad, startSoakLoad } from './soak-load.ts'
import { formatTime, judge, type Latency, type SoakRecord, toFigureTable, toVerdictTable } from './soak-report.ts'
import { type SoakSystem, startSoakSystem } from './soak-system.ts'
import { type Sample, takeSample } from './take-sample.ts'

export interface SoakOptions {
  readonly hours: number
  /** Starts per second. */
  readonly rate: number
  /** Mean seconds between two incidents. */
  readonly incidentSeconds: number
  /** The same seed gives the same incidents. Default: a random one. */
  readonly seed?: number | undefined
  /** The folder for the table, the picture and the figures. */
  readonly output: string
  readonly log: (line: string) => void
}

const DRAIN_TIMEOUT_MS = 900_000
const MIN_FREE_BYTES = 2 * 2 ** 30
const SAMPLES = 720
/** RabbitMQ 3.10 may lose a quorum queue when it is killed within minutes of the queue's declaration. */
const BROKER_WARM_UP_MS = 240_000

/**
 * Runs the load with incidents for the given time, waits until all runs have ended, checks every guarantee, and writes
 * `soak.md`, `soak.svg` and `soak.json`. Resolves to what is wrong: broken guarantees and figures that grew.
 */
export async function runSoak(options: SoakOptions): Promise<string[]> {
  const { hours, rate, incidentSeconds, seed = randomInt(2 ** 31), output, log } = options
  await mkdir(output, { recursive: true })
  log(`seed ${seed}`)
  const system = await startSoakSystem()
  try {
    const beganAt = Date.now()
    const untilMs = performance.now() + hours * 3_600_000
    const marks: number[] = []
    const load = await startSoakLoad(system, { rate, seed })
    const sampling = startSampling(system, Math.max(1_000, (hours * 3_600_000) / SAMPLES), log)
    const random = createRandom(seed)
    const cause = async (parts: SoakSystem['parts'], endMs: number): Promise<number> =>
      await causeIncidents({
        parts,
        random,
        untilMs: endMs,
        calmMs: [500 * incidentSeconds, 1_500 * incidentSeconds],
        log: (line) => {
          marks.push(Date.now() - beganAt)
          log(`${formatTime(Date.now() - beganAt)}  ${line}`)
        },
      })
    const withoutBroker = system.parts.filter(({ name }) => name !== 'rabbitmq')
    let incidents = await cause(withoutBroker, Math.min(untilMs, performance.now() + BROKER_WARM_UP_MS))
    incidents += await cause(system.parts, untilMs)
    await pause(Math.max(0, untilMs - performance.now()))
    const endedAt = Date.now()
    const samples = await sampling.stop()
    await load.stop()
    log(`${incidents} incidents; waiting for all runs to end`)
    await waitUntil(async () => (await countUnfinished(system)) === 0, {
      timeoutMs: DRAIN_TIMEOUT_MS,
      intervalMs: 1_000,
      message: () => 'all runs to end',
    })
    const record = { beganAt, endedAt, samples, ...collectLatencies(system, load) }
    await writeFile(join(output, 'soak.json'), JSON.stringify({ hours, rate, seed, marks, record }))
    await writeFile(join(output, 'soak.svg'), drawSoak(record, marks))
    const violations = await checkGuarantees(system, load, log)
    const verdicts = judge(record)
    const grown = verdicts.filter(({ outcome }) => outcome !== 'kept').map(({ name, outcome }) => `${name}: ${outcome}`)
    const text = [
      `${hours} h, ${rate} starts/s, ${incidents} incidents, seed ${seed}`,
      '',
      toFigureTable(record),
      '',
      toVerdictTable(verdicts),
      '',
      `${violations.length} broken guarantees`,
      ...violations.slice(0, 100),
      '',
    ].join('\n')
    log(text)
    await writeFile(join(output, 'soak.md'), text)
    return [...violations, ...grown]
  } finally {
    await system.close()
  }
}

function startSampling(
  system: SoakSystem,
  intervalMs: number,
  log: (line: string) => void,
): { stop(): Promise<Sample[]> } {
  const samples: Sample[] = []
  const stopping = new AbortController()
  const sampleOnce = async (): Promise<void> => {
    const { bavail, bsize } = await statfs(tmpdir())
    if (bavail * bsize < MIN_FREE_BYTES) {
      log('Less than 2 GiB of disk are free: ending.')
      process.exit(2)
    }
    // PostgreSQL or RabbitMQ may be down.
    const sample = await takeSample(system).catch(() => undefined)
    if (sample) samples.push(sample)
  }
  const running = (async () => {
    while (!stopping.signal.aborted) {
      const nextAt = performance.now() + intervalMs
      await sampleOnce()
      await pause(Math.max(0, nextAt - performance.now()), undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await running
      return samples
    },
  }
}

async function countUnfinished({ db }: SoakSystem): Promise<number> {
  const { rows } = await db.pool.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM sessions WHERE last_finished_number < last_start_number',
  )
  return rows[0]!.count
}

async function checkGuarantees(system: SoakSystem, load: SoakLoad, log: (line: string) => void): Promise<string[]> {
  const violations: string[] = []
  const byPath = Map.groupBy(system.endpoint.arrivals, ({ path }) => path)
  for (const { customer, load: ofCustomer } of load.starts) {
    const { name, organizationId, paths, isBroken } = customer
    const findings = await checkRecord(system.db, {
      organizationId,
      requested: ofCustomer.requested,
      arrivals: paths.flatMap((path) => byPath.get(path) ?? []).toSorted((a, b) => a.at - b.at),
      paths,
      mayFailWith: (error) => isBroken && /^delivery_(rejected|unreachable|timed_out)/.test(error),
    })
    const { accepted, succeeded, outcomeUnknown, payloads, retried } = findings
    log(
      `${name}: ${accepted} accepted, ${succeeded} succeeded, ${outcomeUnknown} with an unknown outcome, ` +
        `${payloads} payloads, ${retried} runs attempted again`,
    )
    violations.push(...ofCustomer.wrongAnswers.map((answer) => `wrong answer: ${answer}`), ...findings.violations)
  }
  return violations
}

/** Starts of customers with slow or broken endpoints wait for earlier starts of their session, so they are not timed. */
function collectLatencies(system: SoakSystem, load: SoakLoad): Pick<SoakRecord, 'latencies' | 'starts'> {
  const arrivedAt = new Map<string, TimedArrival>()
  for (const arrival of system.endpoint.arrivals) {
    if (!arrivedAt.has(arrival.text)) arrivedAt.set(arrival.text, arrival)
  }
  const accepted = load.starts.flatMap(({ customer, load: { requested } }) =>
    requested.flatMap(({ text, accepted: answer }) => (answer ? [{ customer, text, at: answer.requestedAt }] : [])),
  )
  const toLatency = (at: number, ms: number): Latency => ({ at, ms, isDisturbed: system.isDisturbed(at) })
  const ofRequests = (wanted: string): Latency[] =>
    load.requests.flatMap(({ kind, at, ms }) => (kind === wanted && ms !== undefined ? [toLatency(at, ms)] : []))
  return {
    starts: accepted.map(({ at }) => at),
    latencies: {
      start: accepted.flatMap(({ customer, text, at }) => {
        const arrival = arrivedAt.get(text)
        return arrival && customer.paths[1].endsWith('/audit') ? [toLatency(at, arrival.at - at)] : []
      }),
      api: ofRequests('api'),
      app: ofRequests('app'),
      commit: ofRequests('commit'),
    },
  }
}
