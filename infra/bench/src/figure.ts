import Table from 'cli-table3'

/** One measured number, and what it is held against: a limit measured in the same run, or a fixed bound. */
export interface Figure {
  readonly name: string
  /** The median over the rounds. */
  readonly value: number
  readonly unit: string
  readonly limit: { readonly name: string; readonly value: number }
  /** `at least`: value ÷ limit must reach the ratio. `at most`: it must not pass it. Absent: shown, and nothing is aimed at. */
  readonly reach?: { readonly kind: 'at least' | 'at most'; readonly ratio: number }
}

/** The middle value; of an even number of them, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = Number.NaN, high = Number.NaN] = [sorted[middle - 1], sorted[middle]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2
}

/** The value below which the share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

export function ratioOf({ value, limit }: Figure): number {
  return value / limit.value
}

/** Undefined where nothing is aimed at. */
export function isReached(figure: Figure): boolean | undefined {
  if (!figure.reach) return undefined
  const { kind, ratio } = figure.reach
  return kind === 'at least' ? ratioOf(figure) >= ratio : ratioOf(figure) <= ratio
}

/** The figures as a table for people. */
export function toTable(figures: readonly Figure[]): string {
  const table = new Table({
    head: ['figure', 'value', 'limit, same run', 'ratio', 'reach', ''],
    style: { head: [], border: [] },
  })
  for (const figure of figures) {
    const { name, unit, value, limit, reach } = figure
    table.push([
      name,
      `${round(value)} ${unit}`,
      `${limit.name}: ${round(limit.value)} ${unit}`,
      round(ratioOf(figure)),
      reach ? `${reach.kind === 'at least' ? '≥' : '≤'} ${reach.ratio}` : '',
      reach ? (isReached(figure) ? 'reached' : 'MISSED') : '',
    ])
  }
  return table.toString()
}

/** Three significant digits. */
function round(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en')
}
