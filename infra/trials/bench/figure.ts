import { median, round, toTable } from '../shared/figures.ts'

/** The options of the command line, and where progress is logged. */
export interface BenchOptions {
  /** Rounds of each measurement; the figure is their median. */
  readonly rounds: number
  /** Length of one round under load. */
  readonly seconds: number
  /** Rows of the large tables in the parts `list`, `log` and `app`. */
  readonly largeTable: number
  /** Starts, and deliveries, in the part `scale`. */
  readonly rows: number
  /** The folder for a CPU profile of each service. Empty for none, because profiling costs time. */
  readonly profile?: string | undefined
  /** Runner and dispatcher in one process. */
  readonly compact: boolean
  readonly log: (line: string) => void
}

/** One measured number and what it is compared with: a baseline measured in the same run, or a fixed limit. */
export interface Figure {
  readonly name: string
  /** The median of the rounds. */
  readonly value: number
  readonly unit: string
  readonly baseline: { readonly name: string; readonly value: number }
  /** The ratio value ÷ baseline that is aimed at. Absent: the figure is only shown. */
  readonly target?: { readonly kind: 'at least' | 'at most'; readonly ratio: number } | undefined
}

/** A figure and what it is compared with, by name and value. Without a target, it is only shown. */
export function compare(
  name: string,
  value: number,
  unit: string,
  [baseline, baselineValue]: readonly [name: string, value: number],
  target?: Figure['target'],
): Figure {
  return { name, value, unit, baseline: { name: baseline, value: baselineValue }, target }
}

export const atLeast = (ratio: number) => ({ kind: 'at least', ratio }) as const
export const atMost = (ratio: number) => ({ kind: 'at most', ratio }) as const

/** A figure with a limit that does not depend on the machine. */
export function limit(name: string, value: number, unit: string, most: number): Figure {
  return compare(name, value, unit, ['fixed', most], atMost(1))
}

export function toFigureTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { name, unit, value, baseline, target } = figure
    const compared = [
      `${round(value)} ${unit}`,
      `${baseline.name}: ${round(baseline.value)} ${unit}`,
      round(ratioOf(figure)),
    ]
    if (!target) return [name, ...compared, '', '']
    const aim = `${target.kind === 'at least' ? '≥' : '≤'} ${target.ratio}`
    return [name, ...compared, aim, isReached(figure) ? 'reached' : 'MISSED']
  })
  return toTable(['figure', 'value', 'baseline, same run', 'ratio', 'target', ''], rows)
}

/** The figures as `--json` writes them. */
export function toJson(figures: readonly Figure[]): object[] {
  return figures.map((figure) => {
    const { name, value, unit, baseline, target } = figure
    return { name, value, unit, limit: baseline, reach: target, ratio: ratioOf(figure), reached: isReached(figure) }
  })
}

function ratioOf({ value, baseline }: Figure): number {
  return value / baseline.value
}

/** Undefined for a figure without a target. */
function isReached(figure: Figure): boolean | undefined {
  if (!figure.target) return undefined
  const { kind, ratio } = figure.target
  // 0 keeps to a limit of 0.
  return kind === 'at least' ? ratioOf(figure) >= ratio : figure.value <= ratio * figure.baseline.value
}

/** Pieces of a round. The shorter a piece, the more alike the machine is for a measurement and its baselines. */
const PIECES = 3

/** The length of a piece in whole seconds. */
export function pieceSeconds({ seconds }: Pick<BenchOptions, 'seconds'>): number {
  return Math.max(1, Math.round(seconds / PIECES))
}

/**
 * Alternates between measurements, so that a disturbance of the machine affects all of them. Resolves to their medians.
 */
export async function measureAlternately<Name extends string>(
  { rounds }: Pick<BenchOptions, 'rounds'>,
  measures: Record<Name, () => Promise<number>>,
): Promise<Record<Name, number>> {
  const measured = Object.entries<() => Promise<number>>(measures).map(([name, measure]) => ({
    name,
    measure,
    values: [] as number[],
  }))
  for (let piece = 0; piece < rounds * PIECES; piece += 1) {
    for (const { measure, values } of measured) values.push(await measure())
  }
  return Object.fromEntries(measured.map(({ name, values }) => [name, median(values)])) as Record<Name, number>
}
