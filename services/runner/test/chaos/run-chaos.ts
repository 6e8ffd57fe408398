import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@workflow-service/testkit'
import type { RunnerTiming } from '../../src/index.ts'
import { checkRecord, countUnfinished, type Findings } from './check-record.ts'
import { causeIncidents } from './incidents.ts'
import { startLoad } from './load.ts'
import { createRandom } from './random.ts'
import { startServiceSystem } from './service-system.ts'

export interface ChaosOptions {
  /** The same seed makes the same incidents and callers; what they meet is up to the machine. */
  readonly seed: number
  /** How long parts are killed under load. Starting, and running all that was accepted, come on top. */
  readonly seconds: number
  readonly log: (line: string) => void
  /** The runners' clocks; by default as in production. */
  readonly timing?: Partial<RunnerTiming>
  /** Callers at once. Default 8. */
  readonly lines?: number
}

export interface ChaosReport extends Findings {
  readonly seed: number
  readonly incidents: number
  /** What the services wrote. */
  readonly output: string
}

/** How long everything that was accepted may take to end after the last incident. */
const DRAIN_TIMEOUT_MS = 180_000

/** Runs the whole service under load, kills its parts at random, and checks what the endpoint got. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, seconds, timing = {}, lines = 8 } = options
  const beganMs = performance.now()
  const log = (line: string): void => {
    const elapsed = ((performance.now() - beganMs) / 1_000).toFixed(1)
    options.log(`${elapsed.padStart(6)} s  ${line}`)
  }
  log(`seed ${seed}`)
  const system = await startServiceSystem({ timing, log })
  try {
    const { gatewayUrl, workflowId, apiKey, endpoint, db, parts } = system
    // Mostly quick, sometimes slow enough for something to die meanwhile.
    endpoint.answerWith((request) => ({ status: 204, delayMs: delayOf(request.text) }))
    const untilMs = performance.now() + seconds * 1_000
    const random = createRandom(seed)
    const pauseMs = [20, 400] as const
    const load = startLoad({
      gatewayUrl,
      workflowId,
      apiKey,
      lines,
      pauseMs,
      random: createRandom(seed + 1),
      countUnfinished: () => countUnfinished(db),
    })
    const incidents = await causeIncidents({ parts, random, untilMs, log })
    log(`${incidents} incidents; everything is up again`)
    await pause(1_000)
    await load.stop()
    log(`${load.asked.length} starts asked for; waiting for all runs to end`)
    await waitUntil(async () => (await countUnfinished(db)) === 0, {
      timeoutMs: DRAIN_TIMEOUT_MS,
      intervalMs: 200,
      message: () => `all runs to end (seed ${seed})\n${system.output()}`,
    })
    const findings = await checkRecord(db, load.asked, endpoint.requests)
    const faults = [...load.wrongAnswers.map((answer) => `wrong answer: ${answer}`), ...findings.faults]
    const { accepted, succeeded, outcomeUnknown, payloads, takenUpAgain } = findings
    log(
      `${accepted} accepted, ${succeeded} succeeded, ${outcomeUnknown} with an outcome that is not known, ` +
        `${payloads} payloads, ${takenUpAgain} runs taken up again; ${faults.length} faults`,
    )
    return { ...findings, faults, seed, incidents, output: system.output() }
  } finally {
    await system.stop()
  }
}

/** The same text always takes the same time. */
function delayOf(text: string): number {
  let hash = 7
  for (const letter of text) hash = (hash * 31 + letter.charCodeAt(0)) % 10_007
  return hash % 30 === 0 ? 1_500 : hash % 100
}
