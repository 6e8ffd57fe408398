import type { UsageOut } from '@workflow-service/contract'

/** A result as people count it: statuses of runs or outcomes of deliveries. */
interface Result {
  readonly label: string
  readonly tone: 'good' | 'bad' | 'warn' | 'quiet'
  readonly names: readonly string[]
}

const RUN_RESULTS: readonly Result[] = [
  { label: 'succeeded', tone: 'good', names: ['succeeded'] },
  { label: 'failed', tone: 'bad', names: ['failed'] },
  // Cancelled, or not ended.
  { label: 'other', tone: 'quiet', names: ['cancelled', 'queued', 'running', 'waiting'] },
]

export const DELIVERY_RESULTS: readonly Result[] = [
  { label: 'accepted', tone: 'good', names: ['accepted'] },
  { label: 'not accepted', tone: 'bad', names: ['rejected', 'timed_out', 'unreachable', 'refused', 'invalid'] },
  { label: 'unknown', tone: 'warn', names: ['unknown', 'in_flight'] },
]

/** The results of each measure of the usage. */
export const RESULTS = { starts: RUN_RESULTS, deliveries: DELIVERY_RESULTS } as const
export type Measure = keyof typeof RESULTS

/** Counts each result of a measure in all buckets. */
export function totalsOf(buckets: UsageOut['buckets'], measure: Measure): number[] {
  return RESULTS[measure].map(({ names }) => buckets.reduce((sum, bucket) => sum + countOf(bucket[measure], names), 0))
}

/** Adds up the counts with these names. */
export function countOf(counts: Readonly<Record<string, number>>, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (counts[name] ?? 0), 0)
}
