import { toTable as toMarkdown } from '../../../packages/contract/src/markdown-table.ts'

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

/** Three significant digits. */
export function round(value: number): string {
  return Number.isNaN(value) ? '–' : Number(value.toPrecision(3)).toLocaleString('en')
}

export function secondsSince(startedAt: number): string {
  return ((performance.now() - startedAt) / 1_000).toFixed(1)
}

/** A table in Markdown, which can also be read in a terminal. */
export function toTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return toMarkdown([head, ...rows.map((row) => row.map(String))]).trimEnd()
}

/** Counts equal texts: `3 × 422, 1 × 503`. */
export function tally(values: Iterable<string | number>): string {
  const counts = Map.groupBy(values, (value) => value)
  return [...counts].map(([value, { length }]) => `${length} × ${value}`).join(', ')
}
