import type { Manifest } from '@workflow-service/contract'
import { type ApplyContext, changesBetween, FOREIGN_ID, isSame, type ManifestChange, omit } from './apply-context.ts'

export type WorkflowEntry = NonNullable<Manifest['workflows']>[number]

/** A trigger or a file. A changed one is deleted and inserted again. */
export interface Child {
  id: string
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
}

export interface PartChange {
  readonly workflow_id: string
  readonly change: ManifestChange
}

/**
 * The changes of triggers or files. An added or removed one is a single change, a changed one has a change for each
 * value.
 */
export function partChanges<Row extends Child>(
  field: string,
  { removed, added }: Difference<Row>,
  labelOf: (row: Row) => string,
  valuesOf: (row: Row) => Record<string, unknown>,
): PartChange[] {
  const keyOf = ({ workflow_id: workflowId, id }: Row) => `${workflowId} ${id}`
  const removedByKey = new Map(removed.map((row) => [keyOf(row), row]))
  const addedKeys = new Set(added.map(keyOf))
  const toPart = (row: Row, change: ManifestChange): PartChange => ({ workflow_id: row.workflow_id, change })
  return [
    ...removed
      .filter((row) => !addedKeys.has(keyOf(row)))
      .map((row) => toPart(row, { field: `${field}.${labelOf(row)}`, old: valuesOf(row), new: null })),
    ...added.flatMap((row) => {
      const before = removedByKey.get(keyOf(row))
      const path = `${field}.${labelOf(before ?? row)}`
      if (!before) return [toPart(row, { field: path, old: null, new: valuesOf(row) })]
      return changesBetween(valuesOf(before), valuesOf(row)).map((change) =>
        toPart(row, { ...change, field: `${path}.${change.field}` }),
      )
    }),
  ]
}

/** Lists are ordered by creation time: items of one manifest are created a millisecond apart, the last one now. */
export function inListOrder(now: Date, createdBefore: number): Date {
  return new Date(now.getTime() - createdBefore)
}

export function toTime(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}

export function workflowIdOf(row: { workflow_id: string }): string {
  return row.workflow_id
}

export function differenceOf<Row>(
  stored: readonly Row[],
  wanted: readonly Row[],
  keyOf: (row: Row) => string,
): Difference<Row> {
  const storedByKey = new Map(stored.map((row) => [keyOf(row), row]))
  const wantedByKey = new Map(wanted.map((row) => [keyOf(row), row]))
  return {
    wanted,
    removed: stored.filter((row) => !isSame(row, wantedByKey.get(keyOf(row)))),
    added: wanted.filter((row) => !isSame(row, storedByKey.get(keyOf(row)))),
  }
}

/**
 * Reads the stored triggers or files of the workflows, with a statement whose parameters are the ids of the workflows
 * and those of the wanted parts. Reports each wanted id that belongs to a workflow outside of the manifest.
 * @param pathOf The paths of the wanted parts by their ids.
 */
export async function readParts<Row extends Child>(
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
