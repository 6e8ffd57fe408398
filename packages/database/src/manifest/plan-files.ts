import { createHash } from 'node:crypto'
import { findMediaError } from '@workflow-service/contract'
import { deriveId } from '../connection/index.ts'
import { type ApplyContext, lowerCaseId, omit } from './apply-context.ts'
import { type Child, type Difference, differenceOf, reportForeignIds, type Wanted } from './workflow-difference.ts'
import { insertRows } from './write-rows.ts'

interface FileRow extends Child {
  name: string
  path: string[]
  sha256: string
}

export function fileLabel({ path, name }: FileRow): string {
  return [...path, name].join('/')
}

export function fileValues({ name, path, sha256 }: FileRow): Record<string, unknown> {
  return { name, path, content: `SHA-256 ${sha256}` }
}

export async function diffFiles(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<Difference<FileRow>> {
  const workflowIds = new Set(wanted.map(({ id }) => id))
  const pathOf = new Map<string, string>()
  const mediaErrors = new Map<string, string>()
  const rows = wanted.flatMap(({ id: workflowId, path: workflowPath, entry }) =>
    (entry.files ?? []).map(({ id: givenId, name, path = [], content = '' }, index): FileRow => {
      const id = lowerCaseId(givenId) ?? deriveId('file', workflowId, ...path, name)
      pathOf.set(id, `${workflowPath}.files[${index}]`)
      const mediaError = findMediaError(name, content)
      if (mediaError) mediaErrors.set(id, mediaError)
      return { id, workflow_id: workflowId, name, path, sha256: sha256Of(content) }
    }),
  )
  const found = await ctx.client.query<FileRow & { organization_id: string }>(SELECT_FILES, [
    [...workflowIds],
    [...pathOf.keys()],
  ])
  reportForeignIds(ctx, found.rows, workflowIds, pathOf)
  const stored = found.rows
    .filter((row) => workflowIds.has(row.workflow_id))
    .map((row): FileRow => omit(row, 'organization_id'))
  const difference = differenceOf(stored, rows, (row) => row.id)
  const storedById = new Map(stored.map((row) => [row.id, row]))
  for (const { id, name, sha256 } of difference.added) {
    const mediaError = mediaErrors.get(id)
    const before = storedById.get(id)
    if (!mediaError || (before?.name === name && before.sha256 === sha256)) continue
    ctx.report(`${pathOf.get(id)}.content`, mediaError)
  }
  return difference
}

const SELECT_FILES = `
  SELECT f.id, f.workflow_id, f.name, f.path, encode(sha256(convert_to(f.content, 'UTF8')), 'hex') AS sha256,
    w.organization_id
  FROM files f JOIN workflows w ON w.id = f.workflow_id
  WHERE f.workflow_id = ANY ($1::uuid[]) OR f.id = ANY ($2::uuid[])`

function sha256Of(content: string): string {
  return createHash('sha256').update(content, 'utf8').digest('hex')
}

export async function writeFiles(
  { client }: ApplyContext,
  wanted: readonly Wanted[],
  { removed, added }: Difference<FileRow>,
): Promise<void> {
  await client.query('DELETE FROM files WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
  const contents = new Map(
    wanted.flatMap(({ id, entry }) =>
      (entry.files ?? []).map((file): [string, string] => [
        locationOf(id, file.path ?? [], file.name),
        file.content ?? '',
      ]),
    ),
  )
  const rows = added.map((row) => ({
    ...omit(row, 'sha256'),
    content: contents.get(locationOf(row.workflow_id, row.path, row.name))!,
  }))
  await insertRows(client, 'files', rows)
}

function locationOf(workflowId: string, path: readonly string[], name: string): string {
  return JSON.stringify([workflowId, ...path, name])
}
