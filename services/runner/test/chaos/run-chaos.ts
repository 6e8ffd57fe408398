import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@workflow-service/testkit'
import type { RunnerTiming } from '../../src/index.ts'
import { checkRecord, countUnfinished, type Findings } from './check-record.ts'
import { causeIncidents, PAUSED_MS } from './incidents.ts'
import { startLoad } from './load.ts'
import { createRandom } from './random.ts'
import { startServiceSystem } from './service-system.ts'

export interface ChaosOptions {
  /** The same seed gives the same incidents and callers; timing still differs from machine to machine. */
  readonly seed: number
  /** The duration of load and incidents. Starting the parts, and waiting for all runs to end, come on top. */
  readonly seconds: number
  readonly log: (line: string) => void
  /** The runners' intervals; by default those of production. */
  readonly timing?: Partial<RunnerTiming>
  /** The shortest and the longest time between two incidents. Default 0.3 to 2.5 s. */
  readonly calmMs?: readonly [number, number]
  /** The shortest and the longest pause of a part: the longest exceeds a lease. Default 0.5 to 8 s. */
  readonly pausedMs?: readonly [number, number]
  /** Default 8. */
  readonly callers?: number
}

export interface ChaosReport extends Findings {
  readonly seed: number
  readonly incidents: number
  /** The log lines of all services. */
  readonly output: string
}

/**
 * The time limit for all runs to end after the last incident. A delivery whose dispatcher was killed becomes `unknown`
 * only at its deadline; the rest of the time is for the backlog of its session on a busy machine.
 */
const DRAIN_TIMEOUT_MS = 240_000

/** Runs the whole service under load, kills random parts of it, and checks the guarantees on the records. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, seconds, timing = {}, calmMs, pausedMs = PAUSED_MS, callers = 8 } = options
  const beganMs = performance.now()
  const log = (line: string): void => {
    const elapsed = ((performance.now() - beganMs) / 1_000).toFixed(1)
    options.log(`${elapsed.padStart(6)} s  ${line}`)
  }
  log(`seed ${seed}`)
  const system = await startServiceSystem({ timing, longestPauseMs: pausedMs[1], log })
  try {
    const { gatewayUrl, organizationId, workflowId, apiKey, endpoint, db, parts } = system
    // Mostly quick, sometimes slow enough for a part to be killed meanwhile.
    endpoint.answerWith((request) => ({ status: 204, delayMs: delayOf(request.text) }))
    const untilMs = performance.now() + seconds * 1_000
    const random = createRandom(seed)
    const pauseMs = [50, 600] as const
    const load = startLoad({
      gatewayUrls: [gatewayUrl],
      workflowId,
      apiKey,
      callers,
      pauseMs,
      random: createRandom(seed + 1),
      countUnfinished: () => countUnfinished(db),
    })
    const incidents = await causeIncidents({ parts, random, untilMs, calmMs, pausedMs, log })
    log(`${incidents} incidents; every part is up again`)
    await pause(1_000)
    await load.stop()
    log(`${load.requested.length} starts requested; waiting for all runs to end`)
    await waitUntil(async () => (await countUnfinished(db)) === 0, {
      timeoutMs: DRAIN_TIMEOUT_MS,
      intervalMs: 200,
      message: () => `all runs to end (seed ${seed})\n${system.output()}`,
    })
    const findings = await checkRecord(db, {
      organizationId,
      requested: load.requested,
      arrivals: endpoint.requests.map(({ path, json }) => ({ path, text: (json as { message: string }).message })),
      paths: ['/orders', '/audit'],
    })
    const violations = [...load.wrongAnswers.map((answer) => `wrong answer: ${answer}`), ...findings.violations]
    const { accepted, succeeded, outcomeUnknown, payloads, retried } = findings
    log(
      `${accepted} accepted, ${succeeded} succeeded, ${outcomeUnknown} with an unknown outcome, ` +
        `${payloads} payloads, ${retried} runs attempted again; ${violations.length} violations`,
    )
    return { ...findings, violations, seed, incidents, output: system.output() }
  } finally {
    await system.stop()
  }
}

/** Always the same delay for the same text. */
function delayOf(text: string): number {
  let hash = 7
  for (const letter of text) hash = (hash * 31 + letter.charCodeAt(0)) % 10_007
  return hash % 30 === 0 ? 1_500 : hash % 100
}
