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

/** Each round of two measurements is cut into so many pieces: the less time between the two, the more alike the machine. */
const PIECES = 3

/** The medians of two measurements taken in turn, so that what disturbs the machine disturbs both. */
export async function inTurn(
  { rounds }: Measuring,
  measure: () => Promise<number>,
  measureLimit: () => Promise<number>,
): Promise<{ value: number; limit: number }> {
  const values: number[] = []
  const limits: number[] = []
  for (let piece = 0; piece < rounds * PIECES; piece += 1) {
    limits.push(await measureLimit())
    values.push(await measure())
  }
  return { value: median(values), limit: median(limits) }
}
