import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTrial } from '../shared/define-trial.ts'
import { round, toTable } from '../shared/figures.ts'
import { peakResidentMiB } from '../shared/process-usage.ts'
import { type ServiceName, SERVICES } from '../shared/system.ts'
import type { Attack } from './attack.ts'
import { API_ATTACKS } from './attacks/api.ts'
import { APPLICATION_ATTACKS } from './attacks/application.ts'
import { MODEL_ATTACKS } from './attacks/model.ts'
import { RUN_ATTACKS } from './attacks/runs.ts'
import { type AttackTarget, LATENCY_KINDS, startAttackTarget, type VictimLatency } from './target.ts'

/** All attacks, in the order in which they run. */
export const ATTACKS: readonly Attack[] = [...RUN_ATTACKS, ...API_ATTACKS, ...MODEL_ATTACKS, ...APPLICATION_ATTACKS]

export const trial = defineTrial({
  summary: 'attacks the services, and measures what another organization notices',
  parts: ATTACKS.map(({ name }) => name),
  options: {
    seconds: ['how long an attack goes on that repeats its requests', 5],
    json: ['also write the reports to this file', ''],
  },
  async run({ options: { seconds, json }, parts, log }) {
    const reports: AttackReport[] = []
    for (const attack of ATTACKS.filter(({ name }) => parts.includes(name))) {
      log(attack.name)
      // A new target for each attack, so that nothing of the previous one is still under way.
      await using target = await startAttackTarget(attack.services)
      const report = await runAttack(target, attack, { seconds })
      reports.push(report)
      for (const violation of report.violations) log(`  ${violation}`)
    }
    process.stdout.write(`${describeReports(reports)}\n`)
    if (json !== '') await writeFile(json, `${JSON.stringify({ seconds, reports }, null, 2)}\n`)
    return reports.flatMap(({ name, violations }) => violations.map((violation) => `${name}: ${violation}`))
  },
})

const MIN_LOAD_MS = 3_000
const WARM_UP_MS = 300
/**
 * Between as many ordinary requests and the attack: when these open thousands of connections, the kernel's queue is
 * full for a while, and the victim's first connections, which are then opened, wait 0.3 s for a retransmission.
 */
const SETTLE_MS = 1_000

const MAX_LATENCY_MS = 100
const MAX_LATENCY_RATIO = 5
/** Above that of as many ordinary requests. */
const MAX_ORDINARY_RATIO = 1.5
const MAX_RESIDENT_MIB = 512
/**
 * Attacks on the application: above the victim's latency before the attack or, if longer, during as many ordinary
 * requests.
 */
const MAX_APPLICATION_RATIO = 2
/** Below it, the noise of two busy processors hides what an attack does. */
const MIN_APPLICATION_MS = 50

interface AttackReport {
  readonly name: string
  readonly summary: string
  readonly durationMs: number
  /** Without ordinary requests for an attack that has no such counterpart. */
  readonly latency: { before?: VictimLatency; ordinary?: VictimLatency; during?: VictimLatency }
  /** Null for a service that the attack ends. */
  readonly peakMiB: Record<ServiceName, number | null>
  /** Why the services or the victim were hurt; empty if they were not. */
  readonly violations: readonly string[]
}

/**
 * Measures the victim before and during an attack, and the processes after it.
 * @param options.loadMs How long the victim's load lasts before the attack, and at least from the start of the attack.
 * @param options.findsDelays False to accept any latency of the victim: then there are neither a warm-up nor ordinary
 *   requests.
 */
export async function runAttack(
  target: AttackTarget,
  attack: Attack,
  { seconds, loadMs = MIN_LOAD_MS, findsDelays = true }: { seconds: number; loadMs?: number; findsDelays?: boolean },
): Promise<AttackReport> {
  const { checksLatency = true, ends = [] } = attack
  const violations: string[] = []
  const errors: string[] = []
  const expect = (isMet: boolean, violation: string): void => {
    if (!isMet) violations.push(violation)
  }
  const latency: AttackReport['latency'] = {}
  let durationMs = 0
  const measure = async <Result>(load: keyof typeof latency, send: () => Promise<Result>): Promise<Result> => {
    await target.victim.startLoad()
    try {
      // The victim's connections are open by then: how long a new one waits is a matter of those of the load alone, of
      // which the ordinary requests have as many.
      await sleep(WARM_UP_MS)
      const startedAt = performance.now()
      const result = await send()
      durationMs = performance.now() - startedAt
      await sleep(Math.max(0, loadMs - durationMs))
      return result
    } finally {
      const figures = await target.victim.stopLoad()
      latency[load] = figures.latency
      if (load === 'during') errors.push(...figures.errors)
    }
  }
  const measureBefore = async (): Promise<void> => {
    // The first starts compile code.
    for (let times = findsDelays ? 2 : 1; times > 0; times -= 1) await measure('before', async () => {})
  }
  const pids = SERVICES.map((name) => ({ name, pid: target.services[name].process.pid }))
  const summary = await attack
    .run({
      target,
      seconds,
      expect,
      async sendOrdinary(send) {
        if (!findsDelays) return
        await measureBefore()
        await measure('ordinary', send)
        await sleep(SETTLE_MS)
      },
      async attack(send) {
        if (!latency.before) await measureBefore()
        return await measure('during', send)
      },
    })
    .catch((error: unknown) => {
      if (!latency.during) throw error
      violations.push(`The attack failed: ${String(error)}`)
      return 'ended early'
    })
  const peakMiB: AttackReport['peakMiB'] = { gateway: null, dispatcher: null, runner: null, app: null }
  for (const { name, pid } of pids.filter((each) => !ends.includes(each.name))) {
    const mib = await peakResidentMiB(pid)
    peakMiB[name] = mib
    expect(mib !== null, `The ${name}'s process ended.`)
    expect((mib ?? 0) <= MAX_RESIDENT_MIB, `The ${name} took ${Math.round(mib ?? 0)} MiB.`)
  }
  // Refused requests begin with their path; what remains are lost and repeated payloads.
  const harm = errors.filter((error) => checksLatency || /^(The|A) payload/.test(error))
  expect(harm.length === 0, `The victim had ${harm.length} errors, such as: ${harm[0]}`)
  if (checksLatency && findsDelays) violations.push(...findDelays(attack, latency))
  return { name: attack.name, summary, durationMs, latency, peakMiB, violations }
}

function findDelays({ isOnApplication }: Attack, { before, ordinary, during }: AttackReport['latency']): string[] {
  return LATENCY_KINDS.flatMap((kind) => {
    const [beforeMs = 0, ordinaryMs = 0, ms = 0] = [before, ordinary, during].map((latency) => latency?.[kind].p95)
    const limitMs = isOnApplication
      ? Math.max(MIN_APPLICATION_MS, MAX_APPLICATION_RATIO * Math.max(beforeMs, ordinaryMs))
      : Math.max(MAX_LATENCY_MS, MAX_LATENCY_RATIO * beforeMs, MAX_ORDINARY_RATIO * ordinaryMs)
    if (ms <= limitMs) return []
    return [`The p95 of the victim's ${kind} was ${Math.round(ms)} ms (bar: ${Math.round(limitMs)} ms).`]
  })
}

/** A row for each load, and a verdict for each attack. */
function describeReports(reports: readonly AttackReport[]): string {
  const rows = reports.flatMap(({ name, latency }) =>
    Object.entries(latency).map(([load, of]) => [
      name,
      load,
      ...LATENCY_KINDS.map((kind) => `${round(of[kind].p95)} (${round(of[kind].max)})`),
    ]),
  )
  const verdicts = reports.map(({ name, summary, durationMs, peakMiB, violations }) => {
    const peaks = SERVICES.map((service) => `${service} ${round(peakMiB[service] ?? Number.NaN)}`).join(', ')
    const verdict = violations.length > 0 ? `HURT: ${violations.join(' ')}` : 'ok'
    return `- ${name}: ${verdict} (${summary}; ${(durationMs / 1_000).toFixed(1)} s; peak MiB: ${peaks})`
  })
  const head = ['attack', 'load', 'reads', 'starts', 'reads in the application', 'saves there']
  return `The victim's p95 (max) in ms:\n\n${toTable(head, rows)}\n\n${verdicts.join('\n')}`
}
