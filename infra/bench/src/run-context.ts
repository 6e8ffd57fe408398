import { median } from './figure.ts'

/** How long and how often to measure. */
export interface Measuring {
  /** Rounds of each measurement; the figure is their median. At least 3 for a figure that counts. */
  readonly rounds: number
  /** How long one round of a load lasts. */
  readonly seconds: number
  /** The largest table of the list and log figures. */
  readonly largeTable: number
  /** The folder that takes a CPU profile of each service; undefined for none, since profiling costs time. */
  readonly profile: string | undefined
  /** Says what is under way. */
  readonly say: (line: string) => void
}

/** Each round is cut into so many pieces: the less time between a measurement and its limit, the more alike the machine. */
const PIECES = 3

/** How long a piece lasts, in whole seconds. */
export function pieceSeconds({ seconds }: Measuring): number {
  return Math.max(1, Math.round(seconds / PIECES))
}

/** The medians of a measurement and its limits taken in turn, so that what disturbs the machine disturbs them all. */
export async function inTurn<Limit extends string>(
  { rounds }: Measuring,
  measure: () => Promise<number>,
  measureLimits: Record<Limit, () => Promise<number>>,
): Promise<{ value: number; limits: Record<Limit, number> }> {
  const names = Object.keys(measureLimits) as Limit[]
  const values: number[] = []
  const limits = new Map<Limit, number[]>(names.map((name) => [name, []]))
  for (let piece = 0; piece < rounds * PIECES; piece += 1) {
    for (const name of names) limits.get(name)?.push(await measureLimits[name]())
    values.push(await measure())
  }
  const medians = names.map((name) => [name, median(limits.get(name) ?? [])])
  return { value: median(values), limits: Object.fromEntries(medians) as Record<Limit, number> }
}
