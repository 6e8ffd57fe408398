import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../shared/figures.ts'
import { cpuMs, cpuMsWithChildren, peakResidentMiB } from '../shared/process-usage.ts'
import { type ServiceName, SERVICES } from '../shared/system.ts'
import type { Attack, AttackOptions } from './attack.ts'
import { type AttackTarget, LATENCY_KINDS, type LatencyKind, type VictimFigures } from './target.ts'

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

/** The maximum latency that the verdict allows, for the report. */
export const BAR = `p95 of the victim at most ${MAX_LATENCY_MS} ms, ${MAX_LATENCY_RATIO} times that before, or ${MAX_ORDINARY_RATIO} times that during as many ordinary requests; no request or payload of it lost, no process ended, each at most ${MAX_RESIDENT_MIB} MiB`

/** Milliseconds. */
export interface Latency {
  readonly p50: number
  readonly p95: number
  readonly max: number
}

/** What the victim noticed of a load, and what the load took. */
export interface LoadFigures {
  readonly latency: Readonly<Record<LatencyKind, Latency>>
  /**
   * CPU time in ms while the victim was measured. `attacker` is the trial's own process, which takes it from the
   * services.
   */
  readonly cpuMs: Readonly<Record<ServiceName | 'postgres' | 'attacker', number>>
}

export interface AttackReport {
  readonly name: string
  readonly summary: string
  readonly durationMs: number
  readonly before: LoadFigures
  /** During as many ordinary requests as the attack sends; null for an attack that has no such counterpart. */
  readonly ordinary: LoadFigures | null
  readonly during: LoadFigures
  /** Null for a service that the attack ends. */
  readonly peakMiB: Record<ServiceName, number | null>
  /** Broken promises that do not depend on the machine's speed. */
  readonly violations: readonly string[]
  /** Figures of the victim's latency above the allowed maximum. */
  readonly delays: readonly string[]
}

/**
 * Measures the victim before and during an attack, and the processes after it.
 * @param options.loadMs How long the victim's load lasts before the attack, and at least from the start of the attack.
 * @param options.findsDelays False where only `violations` are read: without a warm-up and as many ordinary requests.
 */
export async function runAttack(
  target: AttackTarget,
  attack: Attack,
  {
    seconds,
    loadMs = MIN_LOAD_MS,
    findsDelays = true,
  }: Pick<AttackOptions, 'seconds'> & { readonly loadMs?: number; readonly findsDelays?: boolean },
): Promise<AttackReport> {
  const violations: string[] = []
  const expect = (isMet: boolean, violation: string): void => {
    if (!isMet) violations.push(violation)
  }
  const measure = async (
    sendLoad: () => Promise<unknown>,
  ): Promise<{ victimFigures: VictimFigures; load: LoadFigures }> => {
    const before = await readCpuTimes(target)
    await target.victim.startLoad()
    // The victim's connections are open by then: how long a new one waits is a matter of those of the load alone, of
    // which the ordinary requests have as many.
    await sleep(WARM_UP_MS)
    const startedAt = performance.now()
    await sendLoad()
    await sleep(Math.max(0, loadMs - (performance.now() - startedAt)))
    const victimFigures = await target.victim.stopLoad()
    const cpu = mapRecord(await readCpuTimes(target), (ms, name) => Math.max(0, ms - before[name]))
    return { victimFigures, load: { latency: mapRecord(victimFigures.ms, summarize), cpuMs: cpu } }
  }
  await attack.prepare?.(target)
  // The first starts compile code.
  if (findsDelays) await measure(async () => {})
  const { load: before } = await measure(async () => {})
  const ordinary =
    attack.sendOrdinary && findsDelays
      ? (await measure(async () => attack.sendOrdinary?.(target, { seconds }))).load
      : null
  const pids = SERVICES.map((name) => ({ name, pid: target.services[name].process.pid }))
  let summary = 'ended early'
  let durationMs = 0
  if (ordinary) await sleep(SETTLE_MS)
  const { victimFigures, load: during } = await measure(async () => {
    const startedAt = performance.now()
    try {
      summary = await attack.run(target, { seconds, expect })
    } catch (error) {
      violations.push(`The attack failed: ${String(error)}`)
    }
    durationMs = performance.now() - startedAt
  })
  await attack.checkAfterwards?.(target, expect)

  const peakMiB: AttackReport['peakMiB'] = { gateway: null, dispatcher: null, runner: null, app: null }
  for (const { name, pid } of pids) {
    if (attack.ends?.includes(name)) continue
    const mib = await peakResidentMiB(pid)
    peakMiB[name] = mib
    expect(mib !== null, `The ${name}'s process ended.`)
    expect((mib ?? 0) <= MAX_RESIDENT_MIB, `The ${name} took ${Math.round(mib ?? 0)} MiB.`)
  }
  const { checksLatency = true } = attack
  // Refused requests begin with their path; what remains are lost and repeated payloads.
  const errors = victimFigures.errors.filter(
    (error) => checksLatency || error.startsWith('The payload') || error.startsWith('A payload'),
  )
  expect(errors.length === 0, `The victim had ${errors.length} errors, such as: ${errors[0]}`)
  const delays = checksLatency && findsDelays ? findDelays(attack, { before, ordinary, during }) : []
  return { name: attack.name, summary, durationMs, before, ordinary, during, peakMiB, violations, delays }
}

function mapRecord<Name extends string, From, To>(
  record: Readonly<Record<Name, From>>,
  map: (value: From, name: Name) => To,
): Record<Name, To> {
  const entries = Object.entries<From>(record).map(([name, value]) => [name, map(value, name as Name)])
  return Object.fromEntries(entries) as Record<Name, To>
}

function summarize(values: readonly number[]): Latency {
  return { p50: percentile(values, 0.5), p95: percentile(values, 0.95), max: percentile(values, 1) }
}

function findDelays(
  { isOnApplication }: Attack,
  { before, ordinary, during }: Pick<AttackReport, 'before' | 'ordinary' | 'during'>,
): string[] {
  return LATENCY_KINDS.flatMap((kind) => {
    const [beforeMs, ordinaryMs] = [before.latency[kind].p95, ordinary?.latency[kind].p95 ?? 0]
    const limitMs = isOnApplication
      ? Math.max(MIN_APPLICATION_MS, MAX_APPLICATION_RATIO * Math.max(beforeMs, ordinaryMs))
      : Math.max(MAX_LATENCY_MS, MAX_LATENCY_RATIO * beforeMs, MAX_ORDINARY_RATIO * ordinaryMs)
    const { p95 } = during.latency[kind]
    return p95 <= limitMs
      ? []
      : [`The p95 of the victim's ${kind} was ${Math.round(p95)} ms (bar: ${Math.round(limitMs)} ms).`]
  })
}

async function readCpuTimes({ services, system }: AttackTarget): Promise<LoadFigures['cpuMs']> {
  const { user, system: kernel } = process.cpuUsage()
  const [gateway = 0, dispatcher = 0, runner = 0, app = 0] = await Promise.all(
    SERVICES.map((name) => cpuMs(services[name].process.pid)),
  )
  const postgres = await cpuMsWithChildren(system.postgres.pid)
  return { gateway, dispatcher, runner, app, postgres, attacker: (user + kernel) / 1_000 }
}
