import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '@workflow-service/bench/figure'
import { cpuMs, cpuMsWithChildren, peakResidentMiB } from '@workflow-service/bench/process-usage'
import type { Attack, AttackOptions, AttackOutcome } from './attack.ts'
import type { AttackTarget, ServiceName } from './attack-target.ts'
import type { VictimFigures } from './victim.ts'

const MIN_LOAD_MS = 3_000

const MAX_LATENCY_MS = 100
const MAX_LATENCY_RATIO = 5
/** Above that of as many ordinary requests. */
const MAX_ORDINARY_RATIO = 1.5
const MAX_RESIDENT_MIB = 512
/** Attacks on the application: above the victim's latency before the attack or, if longer, during as many ordinary requests. */
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

/** What is measured of the victim's requests. Its starts are measured until the payload has arrived. */
export const LATENCY_KINDS = ['reads', 'starts', 'appReads', 'appSaves'] as const
export type LatencyKind = (typeof LATENCY_KINDS)[number]
export type VictimLatency = Readonly<Record<LatencyKind, Latency>>

/** CPU time in ms while the victim was measured. `attacker` is the suite's own process, which takes it from the services. */
export type CpuTimes = Record<ServiceName | 'postgres' | 'attacker', number>

/** What the victim noticed of a load, and what the load took. */
export interface LoadFigures {
  readonly latency: VictimLatency
  readonly cpuMs: CpuTimes
}

export interface AttackReport {
  readonly name: string
  readonly summary: string
  readonly durationMs: number
  readonly before: LoadFigures
  /** During as many ordinary requests as the attack sends; null for an attack that has no such counterpart. */
  readonly ordinary: LoadFigures | null
  readonly during: LoadFigures
  readonly peakMiB: Record<ServiceName, number | null>
  /** Broken promises that do not depend on the machine's speed. */
  readonly violations: readonly string[]
  /** Figures of the victim's latency above the allowed maximum. */
  readonly delays: readonly string[]
}

/**
 * Measures the victim before and during an attack, and the processes after it.
 * @param options.loadMs How long the victim's load lasts before the attack, and at least from the start of the attack.
 */
export async function runAttack(
  target: AttackTarget,
  attack: Attack,
  { seconds, loadMs = MIN_LOAD_MS }: AttackOptions & { readonly loadMs?: number },
): Promise<AttackReport> {
  const { victim, services } = target
  const measure = async (
    send: () => Promise<unknown>,
  ): Promise<{ victimFigures: VictimFigures; load: LoadFigures }> => {
    const cpuBefore = await readCpuTimes(target)
    await victim.startLoad(services)
    const startedAt = performance.now()
    await send()
    await sleep(Math.max(0, loadMs - (performance.now() - startedAt)))
    const victimFigures = await victim.stopLoad()
    const cpuAfter = await readCpuTimes(target)
    const spentMs = mapValues(cpuAfter, (ms, name) => Math.max(0, ms - cpuBefore[name]))
    return { victimFigures, load: { latency: latencyOf(victimFigures), cpuMs: spentMs } }
  }
  await attack.prepare?.(target)
  // The first starts compile code.
  await measure(async () => {})
  const { load: before } = await measure(async () => {})
  const ordinary = attack.sendOrdinary
    ? (await measure(async () => attack.sendOrdinary?.(target, { seconds }))).load
    : null
  const pids = pidsOf(target)
  let outcome: AttackOutcome = { summary: '', violations: [] }
  let durationMs = 0
  const { victimFigures, load: during } = await measure(async () => {
    const startedAt = performance.now()
    outcome = await attack.run(target, { seconds }).catch(toOutcome)
    durationMs = performance.now() - startedAt
  })
  const { summary, violations } = outcome
  const laterViolations = (await attack.checkAfterwards?.(target)) ?? []

  const peakMiB = { gateway: null, dispatcher: null, runner: null, app: null } as AttackReport['peakMiB']
  const ended: string[] = []
  for (const { name, pid } of pids) {
    const mayEnd = attack.ends?.includes(name) ?? false
    peakMiB[name] = mayEnd ? null : await peakResidentMiB(pid)
    if (peakMiB[name] === null && !mayEnd) ended.push(`The ${name}'s process ended.`)
  }
  return {
    name: attack.name,
    summary,
    durationMs,
    before,
    ordinary,
    during,
    peakMiB,
    violations: [
      ...violations,
      ...laterViolations,
      ...ended,
      ...memoryViolations(peakMiB),
      ...victimErrors(victimFigures, attack.checksLatency !== false),
    ],
    delays: attack.checksLatency === false ? [] : findDelays(attack, { before, ordinary, during }),
  }
}

function toOutcome(error: unknown): AttackOutcome {
  return { summary: 'ended early', violations: [`The attack failed: ${String(error)}`] }
}

function pidsOf({ services }: AttackTarget): { name: ServiceName; pid: number }[] {
  return Object.entries(services).map(([name, { process }]) => ({ name: name as ServiceName, pid: process.pid }))
}

function latencyOf(figures: VictimFigures): VictimLatency {
  const { readsMs, startsMs, appReadsMs, appSavesMs } = figures
  return {
    reads: summarize(readsMs),
    starts: summarize(startsMs),
    appReads: summarize(appReadsMs),
    appSaves: summarize(appSavesMs),
  }
}

function summarize(valuesMs: readonly number[]): Latency {
  return { p50: percentile(valuesMs, 0.5), p95: percentile(valuesMs, 0.95), max: percentile(valuesMs, 1) }
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

async function readCpuTimes({ services, environment }: AttackTarget): Promise<CpuTimes> {
  const { user, system } = process.cpuUsage()
  return {
    gateway: await cpuMs(services.gateway.process.pid),
    dispatcher: await cpuMs(services.dispatcher.process.pid),
    runner: await cpuMs(services.runner.process.pid),
    app: await cpuMs(services.app.process.pid),
    postgres: await cpuMsWithChildren(environment.postgres.pid),
    attacker: (user + system) / 1_000,
  }
}

function mapValues(times: CpuTimes, map: (ms: number, name: keyof CpuTimes) => number): CpuTimes {
  const entries = Object.entries(times).map(([name, ms]) => [name, map(ms, name as keyof CpuTimes)])
  return Object.fromEntries(entries) as CpuTimes
}

function memoryViolations(peakMiB: AttackReport['peakMiB']): string[] {
  return Object.entries(peakMiB).flatMap(([name, mib]) =>
    mib === null || mib <= MAX_RESIDENT_MIB ? [] : [`The ${name} took ${Math.round(mib)} MiB.`],
  )
}

/** @param countsRefusals Whether requests of the victim that were refused count, or only its lost and repeated payloads. */
function victimErrors({ errors }: VictimFigures, countsRefusals: boolean): string[] {
  const counted = countsRefusals ? errors : errors.filter((error) => !error.startsWith('/'))
  return counted.length === 0 ? [] : [`The victim had ${counted.length} errors, such as: ${counted[0]}`]
}
