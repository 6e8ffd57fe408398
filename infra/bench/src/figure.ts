import Table from 'cli-table3'

/** One measured number and what it is compared with: a baseline measured in the same run, or a fixed limit. */
export interface Figure {
  readonly name: string
  /** The median of the rounds. */
  readonly value: number
  readonly unit: string
  readonly baseline: { readonly name: string; readonly value: number }
  /** The ratio value ÷ baseline that is aimed at. Absent: the figure is only shown. */
  readonly target?: { readonly kind: 'at least' | 'at most'; readonly ratio: number }
}

/** The middle value, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = Number.NaN, high = Number.NaN] = [sorted[middle - 1], sorted[middle]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2
}

/** The value below which the share (0 to 1) of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

/** A limit that does not depend on the machine, for figures that must not exceed it. */
export function fixedLimit(value: number): Pick<Figure, 'baseline' | 'target'> {
  return { baseline: { name: 'fixed', value }, target: { kind: 'at most', ratio: 1 } }
}

/** The figures as a table for the terminal. */
export function toTable(figures: readonly Figure[]): string {
  const table = new Table({
    head: ['figure', 'value', 'baseline, same run', 'ratio', 'target', ''],
    style: { head: [], border: [] },
  })
  for (const figure of figures) {
    const { name, unit, value, baseline, target } = figure
    table.push([
      name,
      `${round(value)} ${unit}`,
      `${baseline.name}: ${round(baseline.value)} ${unit}`,
      round(ratioOf(figure)),
      target ? `${target.kind === 'at least' ? '≥' : '≤'} ${target.ratio}` : '',
      target ? (isReached(figure) ? 'reached' : 'MISSED') : '',
    ])
  }
  return table.toString()
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
  return kind === 'at least' ? ratioOf(figure) >= ratio : ratioOf(figure) <= ratio
}

/** Three significant digits. */
function round(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en')
}
