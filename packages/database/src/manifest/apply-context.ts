import type { Manifest } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { foldCase } from '../connection/index.ts'
import type { AuditChange } from '../organizations/index.ts'
import type { SecretBox } from '../sources/index.ts'

/** What applying a manifest did to one of its items. */
export type ManifestOutcome = 'created' | 'changed' | 'unchanged'

/** One manifest while it is applied, inside a transaction. */
export interface ApplyContext {
  readonly client: PoolClient
  readonly manifest: Manifest
  readonly organizationId: string
  /** The database's clock at the beginning of the transaction, in whole milliseconds. */
  readonly now: Date
  /** Compares given secrets with the stored ones; without it, every given secret counts as a change. */
  readonly secrets: SecretBox | undefined
  /** Reports a violation. After the first one, nothing is written. */
  readonly report: (path: string, message: string) => void
}

/**
 * A value that applying a manifest changes, such as `auto_run.frequency` or `triggers.From the shop.input_message`.
 * Secrets and keys are described, never shown. A part that is added or removed has null as its old or new value.
 */
export type ManifestChange = AuditChange

/** What the manifest names: its outcome with what changes. */
export interface PlannedThing {
  readonly kind: 'organization' | 'user' | 'api_key' | 'webhook_source' | 'lookup' | 'workflow' | 'session'
  readonly id: string
  readonly name: string
  readonly outcome: ManifestOutcome
  /** Empty for a new thing. */
  readonly changes: readonly ManifestChange[]
  /**
   * What the manifest leaves as it is, because it does not have it: fields of audit events, or for an event without
   * fields its verb.
   */
  readonly kept?: readonly string[]
  /** The ids of deleted things in whose place this new one would be. */
  readonly formerIds?: readonly string[]
}

/** Returns a thing with its outcome. `changes`: of a stored thing; undefined for a new one. */
export function toThing(
  { kind, id, name, kept }: Omit<PlannedThing, 'outcome' | 'changes'>,
  changes: readonly ManifestChange[] | undefined,
): PlannedThing {
  const outcome = !changes ? 'created' : changes.length > 0 ? 'changed' : 'unchanged'
  return { kind, id, name, outcome, changes: changes ?? [], ...(kept && { kept }) }
}

/** What one part of the manifest results in. Nothing is written before all parts are planned without a violation. */
export interface Plan<Thing extends PlannedThing = PlannedThing> {
  readonly things: readonly Thing[]
  /** Absent for what the dispatcher saves. */
  write?(): Promise<void>
}

export const FOREIGN_ID = 'belongs to another organization: leave it out, or give another one'

/** Whether a stored and a wanted row are equal. Their fields must have the same order; times compare as ISO text. */
export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** The fields in which a stored and a wanted object differ. What the manifest leaves as it is, is undefined. */
export function changesBetween<Values extends object>(stored: Values, wanted: Partial<Values>): ManifestChange[] {
  return Object.entries<unknown>(wanted).flatMap(([field, value]) => {
    const old = stored[field as keyof Values]
    return value === undefined || isSame(old, value) ? [] : [{ field, old, new: value }]
  })
}

/** Those of the optional fields that an entry does not have. */
export function absentFields<Entry extends object>(entry: Entry, ...fields: (keyof Entry & string)[]): string[] {
  return fields.filter((field) => entry[field] === undefined)
}

/** The id as it is stored and compared. */
export function lowerCaseId<Id extends string | undefined>(id: Id): Id {
  return id?.toLowerCase() as Id
}

/** Reports each thing that would have the id of an earlier one: given for one, and derived for the other. */
export function reportRepeatedIds(
  { report }: Pick<ApplyContext, 'report'>,
  wanted: readonly { readonly id: string; readonly path: string }[],
): void {
  const first = new Map<string, string>()
  for (const { id, path } of wanted) {
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, path)
    else report(path, `would have the same id as ${earlier}: give each a different id`)
  }
}

/** Lists are ordered by creation time: items of one manifest are created a millisecond apart, the last one now. */
export function inListOrder(now: Date, createdBefore: number): Date {
  return new Date(now.getTime() - createdBefore)
}

export function toTime(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}

/** A thing, and its row as it is to be stored. */
export interface PlannedRow<Thing extends PlannedThing = PlannedThing> {
  readonly thing: Thing
  readonly row: object
}

/** Returns a search for the user of an address: exactly this one, or else the first that differs in case only. */
export function findByEmail<User extends { readonly email: string }>(
  users: readonly User[],
): (email: string) => User | undefined {
  const exact = new Map(users.toReversed().map((user) => [user.email, user]))
  const folded = new Map(users.toReversed().map((user) => [foldCase(user.email), user]))
  return (email) => exact.get(email) ?? folded.get(foldCase(email))
}
