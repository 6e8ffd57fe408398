import type { Manifest } from '@workflow-service/contract'
import { type ApplyContext, changesBetween, FOREIGN_ID, isSame, type ManifestChange, omit } from './apply-context.ts'

export type WorkflowEntry = NonNullable<Manifest['workflows']>[number]

/** A row of a part of a workflow: a user, a trigger or a file. A changed one is deleted and inserted again. */
export interface PartRow {
  workflow_id: string
}

/** An entry of the manifest, with its resolved id. */
export interface Wanted {
  readonly id: string
  readonly path: string
  readonly entry: WorkflowEntry
}

/** The difference between the stored and the wanted rows of workflows. */
export interface Difference<Row> {
  readonly wanted: readonly Row[]
  /** Stored rows to delete. */
  readonly removed: readonly Row[]
  /** Wanted rows to insert. */
  readonly added: readonly Row[]
  readonly changes: readonly { readonly workflow_id: string; readonly change: ManifestChange }[]
}

/** Compares rows. `changesOf` describes what changes from one row to another; undefined: there is none. */
export function differenceOf<Row extends PartRow>(
  stored: readonly Row[],
  wanted: readonly Row[],
  idOf: (row: Row) => string,
  changesOf: (before: Row | undefined, after: Row | undefined) => ManifestChange[],
): Difference<Row> {
  const keyOf = (row: Row) => `${row.workflow_id} ${idOf(row)}`
  const storedByKey = new Map(stored.map((row) => [keyOf(row), row]))
  const wantedByKey = new Map(wanted.map((row) => [keyOf(row), row]))
  const removed = stored.filter((row) => !isSame(row, wantedByKey.get(keyOf(row))))
  const added = wanted.filter((row) => !isSame(row, storedByKey.get(keyOf(row))))
  const changes = [
    ...removed
      .filter((row) => !wantedByKey.has(keyOf(row)))
      .map((row) => ({ ...row, changes: changesOf(row, undefined) })),
    ...added.map((row) => ({ ...row, changes: changesOf(storedByKey.get(keyOf(row)), row) })),
  ].flatMap(({ workflow_id, changes: ofRow }) => ofRow.map((change) => ({ workflow_id, change })))
  return { wanted, removed, added, changes }
}

/** The changes of a trigger or file. An added or removed one is a single change. */
export function partChanges(field: string, old: object | undefined, next: object | undefined): ManifestChange[] {
  if (!old || !next) return [{ field, old: old ?? null, new: next ?? null }]
  return changesBetween(old, next).map((change) => ({ ...change, field: `${field}.${change.field}` }))
}

/** Lists are ordered by creation time: items of one manifest are created a millisecond apart, the last one now. */
export function inListOrder(now: Date, createdBefore: number): Date {
  return new Date(now.getTime() - createdBefore)
}

export function toTime(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}

export function workflowIdOf(row: PartRow): string {
  return row.workflow_id
}

/**
 * Reads the stored triggers or files of the workflows, with a statement whose parameters are the ids of the workflows
 * and those of the wanted parts. Reports each wanted id that belongs to a workflow outside of the manifest.
 * @param pathOf The paths of the wanted parts by their ids.
 */
export async function readParts<Row extends PartRow & { id: string }>(
  { client, organizationId, report }: ApplyContext,
  select: string,
  wanted: readonly Wanted[],
  pathOf: ReadonlyMap<string, string>,
): Promise<Omit<Row, 'organization_id'>[]> {
  const workflowIds = new Set(wanted.map(({ id }) => id))
  const values = [[...workflowIds], [...pathOf.keys()]]
  const { rows } = await client.query<Row & { organization_id: string }>(select, values)
  for (const row of rows) {
    const path = pathOf.get(row.id)
    if (path === undefined) continue
    if (row.organization_id !== organizationId) report(`${path}.id`, FOREIGN_ID)
    else if (!workflowIds.has(row.workflow_id)) {
      report(`${path}.id`, `belongs to workflow ${row.workflow_id}: leave it out, or name that workflow too`)
    }
  }
  return rows.filter((row) => workflowIds.has(row.workflow_id)).map((row) => omit(row, 'organization_id'))
}
