import type { AttackTarget, ServiceName, ServiceOptions } from './attack-target.ts'

/** One attack: what it sends, and what it expects of the services beyond an unharmed victim. */
export interface Attack {
  readonly name: string
  readonly services?: ServiceOptions
  /** Services that the attack itself ends, and whose process id therefore may change. */
  readonly ends?: readonly ServiceName[]
  /**
   * False where the attack takes a resource that all organizations share, such as file descriptors: the victim may wait and be
   * refused then, but no accepted start of it may be lost.
   */
  readonly checksLatency?: boolean
  /** Whether it attacks the application: the victim may not notice more than twice its latency (`MAX_APPLICATION_RATIO`). */
  readonly isOnApplication?: boolean
  /** Inserts data before anything is measured. */
  prepare?(target: AttackTarget): Promise<void>
  /**
   * Sends as much as `run`, but what any customer may send: what the victim notices of it is the machine's share, on which services and
   * attacker compete for the same processors.
   */
  sendOrdinary?(target: AttackTarget, options: AttackOptions): Promise<void>
  run(target: AttackTarget, options: AttackOptions): Promise<AttackOutcome>
  /** Checks what is left of the attack when the victim is no longer measured. Resolves to the violations. */
  checkAfterwards?(target: AttackTarget): Promise<readonly string[]>
}

export interface AttackOptions {
  /** How long an attack goes on that repeats its requests. */
  readonly seconds: number
}

/** What the attack did. */
export interface AttackOutcome {
  /** For the report, with counts. */
  readonly summary: string
  /** Expectations of the attack that the services did not meet. */
  readonly violations: readonly string[]
}

/** Collects the violated expectations of an attack. */
export interface Expectations {
  readonly violations: string[]
  readonly expect: (isMet: boolean, violation: string) => void
}

export function openExpectations(): Expectations {
  const violations: string[] = []
  return {
    violations,
    expect(isMet, violation) {
      if (!isMet) violations.push(violation)
    },
  }
}

/** Repeats an action on some connections until the time is over. Resolves to the number of times. */
export async function repeatFor(
  { seconds, connections }: { seconds: number; connections: number },
  action: () => Promise<void>,
): Promise<number> {
  const endsAt = performance.now() + seconds * 1_000
  let count = 0
  const loop = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      await action()
      count += 1
    }
  }
  await Promise.all(Array.from({ length: connections }, loop))
  return count
}

/** Counts equal texts, for a report: `3 × 422, 1 × 503`. */
export function tally(values: Iterable<string | number>): string {
  const counts = Map.groupBy(values, (value) => value)
  return [...counts].map(([value, { length }]) => `${length} × ${value}`).join(', ')
}
