import type { BenchOptions } from './bench-options.ts'
import { median } from './figure.ts'

/** Pieces of a round. The shorter a piece, the more alike the machine is for a measurement and its baselines. */
const PIECES = 3

/** The length of a piece in whole seconds. */
export function pieceSeconds({ seconds }: Pick<BenchOptions, 'seconds'>): number {
  return Math.max(1, Math.round(seconds / PIECES))
}

/**
 * Alternates between a measurement and its baselines, so that a disturbance of the machine affects all of them.
 * Resolves to their medians.
 */
export async function measureAlternately<Baseline extends string>(
  { rounds }: Pick<BenchOptions, 'rounds'>,
  measure: () => Promise<number>,
  measureBaselines: Record<Baseline, () => Promise<number>>,
): Promise<{ value: number; baselines: Record<Baseline, number> }> {
  const names = Object.keys(measureBaselines) as Baseline[]
  const values: number[] = []
  const baselineValues = new Map<Baseline, number[]>(names.map((name) => [name, []]))
  for (let piece = 0; piece < rounds * PIECES; piece += 1) {
    for (const [name, measured] of baselineValues) measured.push(await measureBaselines[name]())
    values.push(await measure())
  }
  const medians = [...baselineValues].map(([name, measured]) => [name, median(measured)])
  return { value: median(values), baselines: Object.fromEntries(medians) as Record<Baseline, number> }
}
