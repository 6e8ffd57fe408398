import type { Manifest } from '@workflow-service/contract'
import type { PoolClient } from 'pg'

/** What applying a manifest did to one of its items. */
export type ManifestOutcome = 'created' | 'changed' | 'unchanged'

/** One manifest while it is applied, inside a transaction. */
export interface ApplyContext {
  readonly client: PoolClient
  readonly manifest: Manifest
  readonly organizationId: string
  /** The database's clock at the beginning of the transaction, in whole milliseconds. */
  readonly now: Date
  /** Reports a violation. After the first one, nothing is written. */
  readonly report: (path: string, message: string) => void
}

/** What one part of the manifest results in. Nothing is written before all parts are planned without a violation. */
export interface Plan<Result> {
  readonly result: Result
  write(): Promise<void>
}

export const FOREIGN_ID = 'belongs to another organization: leave it out, or give another one'

/** Whether a stored and a wanted row are equal. Their fields must have the same order; times compare as ISO text. */
export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

export function outcomeOf(stored: unknown, wanted: unknown): ManifestOutcome {
  if (stored === undefined) return 'created'
  return isSame(stored, wanted) ? 'unchanged' : 'changed'
}

/** The id as it is stored and compared. */
export function lowerCaseId<Id extends string | undefined>(id: Id): Id {
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

/** The rows that have this outcome. `outcomes` has the outcome of each row at the same index. */
export function rowsWithOutcome<Row>(
  outcome: ManifestOutcome,
  rows: readonly Row[],
  outcomes: readonly ManifestOutcome[],
): Row[] {
  return rows.filter((_row, index) => outcomes[index] === outcome)
}
