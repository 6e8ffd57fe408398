import type { Manifest } from '@workflow-service/contract'
import type { PoolClient } from 'pg'

/** What applying did to a thing. */
export type ManifestOutcome = 'created' | 'changed' | 'unchanged'

/** One manifest while it is applied. */
export interface Application {
  readonly client: PoolClient
  readonly manifest: Manifest
  readonly organizationId: string
  /** The database's clock at the beginning of the transaction, in whole milliseconds. */
  readonly now: Date
  readonly report: (path: string, message: string) => void
}

/** What one part of the manifest comes to; nothing is written before every part was planned without a fault. */
export interface Plan<Result> {
  readonly result: Result
  write(): Promise<void>
}

export const FOREIGN_ID = 'belongs to another organization: leave it out, or give another one'

/** Whether a stored row and a wanted one say the same; times compare as ISO text. */
export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

export function outcomeOf(stored: unknown, wanted: unknown): ManifestOutcome {
  if (stored === undefined) return 'created'
  return isSame(stored, wanted) ? 'unchanged' : 'changed'
}

/** The id as it is stored and compared. */
export function lower<Id extends string | undefined>(id: Id): Id {
  return id?.toLowerCase() as Id
}

/** The row without these columns. */
export function omit<Row extends object, Name extends keyof Row & string>(
  row: Row,
  ...names: readonly Name[]
): Omit<Row, Name> {
  const isKept = ([name]: [string, unknown]) => !names.some((omitted) => omitted === name)
  return Object.fromEntries(Object.entries(row).filter(isKept)) as Omit<Row, Name>
}

/** Those of the rows that had this outcome, which stands at the same place. */
export function rowsThatAre<Row>(
  outcome: ManifestOutcome,
  rows: readonly Row[],
  outcomes: readonly ManifestOutcome[],
): Row[] {
  return rows.filter((_row, index) => outcomes[index] === outcome)
}
