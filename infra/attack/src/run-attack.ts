import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '@workflow-service/bench/figure'
import { peakResidentMiB } from '@workflow-service/bench/process-usage'
import type { Attack, AttackOptions, AttackOutcome } from './attack.ts'
import type { AttackTarget, ServiceName } from './attack-target.ts'
import type { VictimFigures } from './victim.ts'

const MIN_LOAD_MS = 3_000

const MAX_LATENCY_MS = 100
const MAX_LATENCY_RATIO = 5
const MAX_RESIDENT_MIB = 512

/** The maximum latency that the verdict allows, for the report. */
export const BAR = `p95 of the victim at most ${MAX_LATENCY_MS} ms or ${MAX_LATENCY_RATIO} times that before, no request or payload of it lost, no process ended, each at most ${MAX_RESIDENT_MIB} MiB`

/** Milliseconds. */
export interface Latency {
  readonly p50: number
  readonly p95: number
  readonly max: number
}

/** The victim's reads, and its starts until the payload has arrived. */
export interface VictimLatency {
  readonly reads: Latency
  readonly starts: Latency
}

export interface AttackReport {
  readonly name: string
  readonly done: string
  readonly durationMs: number
  readonly before: VictimLatency
  readonly during: VictimLatency
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
  const measureBefore = async (): Promise<VictimFigures> => {
    await victim.startLoad(services.gateway)
    await sleep(loadMs)
    return victim.stopLoad()
  }
  await attack.prepare?.(target)
  // The first starts compile code.
  await measureBefore()
  const before = await measureBefore()
  const pids = pidsOf(target)
  await victim.startLoad(services.gateway)
  const startedAt = performance.now()
  const { done, violations } = await attack.run(target, { seconds }).catch(toOutcome)
  const durationMs = performance.now() - startedAt
  await sleep(Math.max(0, loadMs - durationMs))
  const during = await victim.stopLoad()

  const latencies = { before: latencyOf(before), during: latencyOf(during) }
  const peakMiB = { gateway: null, dispatcher: null, runner: null } as AttackReport['peakMiB']
  const ended: string[] = []
  for (const { name, pid } of pids) {
    const mayEnd = attack.ends?.includes(name) ?? false
    peakMiB[name] = mayEnd ? null : await peakResidentMiB(pid)
    if (peakMiB[name] === null && !mayEnd) ended.push(`The ${name}'s process ended.`)
  }
  return {
    name: attack.name,
    done,
    durationMs,
    ...latencies,
    peakMiB,
    violations: [
      ...violations,
      ...ended,
      ...memoryViolations(peakMiB),
      ...victimErrors(during, attack.checksLatency !== false),
    ],
    delays: attack.checksLatency === false ? [] : findDelays(latencies.before, latencies.during),
  }
}

function toOutcome(error: unknown): AttackOutcome {
  return { done: 'ended early', violations: [`The attack failed: ${String(error)}`] }
}

function pidsOf({ services }: AttackTarget): { name: ServiceName; pid: number }[] {
  return Object.entries(services).map(([name, { process }]) => ({ name: name as ServiceName, pid: process.pid }))
}

function latencyOf({ readsMs, startsMs }: VictimFigures): VictimLatency {
  return { reads: summarize(readsMs), starts: summarize(startsMs) }
}

function summarize(valuesMs: readonly number[]): Latency {
  return { p50: percentile(valuesMs, 0.5), p95: percentile(valuesMs, 0.95), max: percentile(valuesMs, 1) }
}

function findDelays(before: VictimLatency, during: VictimLatency): string[] {
  return (['reads', 'starts'] as const).flatMap((kind) => {
    const limitMs = Math.max(MAX_LATENCY_MS, MAX_LATENCY_RATIO * before[kind].p95)
    const { p95 } = during[kind]
    return p95 <= limitMs
      ? []
      : [`The p95 of the victim's ${kind} was ${Math.round(p95)} ms (bar: ${Math.round(limitMs)} ms).`]
  })
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
