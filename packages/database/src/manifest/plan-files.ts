import { hash } from 'node:crypto'
import { findMediaError } from '@workflow-service/contract'
import { deriveId } from '../connection/index.ts'
import { type ApplyContext, lowerCaseId, omit } from './apply-context.ts'
import {
  type Difference,
  differenceOf,
  partChanges,
  type PartRow,
  readParts,
  type Wanted,
} from './workflow-difference.ts'
import { insertRows } from './write-rows.ts'

interface FileRow extends PartRow {
  id: string
  name: string
  path: string[]
  sha256: string
}

function fileValues({ name, path, sha256 }: FileRow): object {
  return { name, path, content: `SHA-256 ${sha256}` }
}

/** The files, with the contents of the wanted ones by id. */
type FileDifference = Difference<FileRow> & { readonly contents: ReadonlyMap<string, string> }

export async function diffFiles(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<FileDifference> {
  const pathOf = new Map<string, string>()
  const contents = new Map<string, string>()
  const rows = wanted.flatMap(({ id: workflowId, path: workflowPath, entry }) =>
    (entry.files ?? []).map(({ id: givenId, name, path = [], content = '' }, index): FileRow => {
      const id = lowerCaseId(givenId) ?? deriveId('file', workflowId, ...path, name)
      pathOf.set(id, `${workflowPath}.files[${index}]`)
      contents.set(id, content)
      return { id, workflow_id: workflowId, name, path, sha256: hash('sha256', content) }
    }),
  )
  const stored = await readParts<FileRow>(ctx, SELECT_FILES, wanted, pathOf)
  const idOf = (row: FileRow) => row.id
  const difference = differenceOf(stored, rows, idOf, (before, after) => {
    const { path, name } = (before ?? after)!
    return partChanges(`files.${[...path, name].join('/')}`, before && fileValues(before), after && fileValues(after))
  })
  for (const { id, name, sha256 } of difference.added) {
    const isStored = stored.some((file) => file.id === id && file.name === name && file.sha256 === sha256)
    const mediaError = isStored ? undefined : findMediaError(name, contents.get(id)!)
    if (mediaError) ctx.report(`${pathOf.get(id)}.content`, mediaError)
  }
  return { ...difference, contents }
}

const SELECT_FILES = `
  SELECT f.id, f.workflow_id, f.name, f.path, encode(sha256(convert_to(f.content, 'UTF8')), 'hex') AS sha256,
    w.organization_id
  FROM files f JOIN workflows w ON w.id = f.workflow_id
  WHERE f.workflow_id = ANY ($1::uuid[]) OR f.id = ANY ($2::uuid[])`

export async function writeFiles(
  { client }: ApplyContext,
  { removed, added, contents }: FileDifference,
): Promise<void> {
  await client.query('DELETE FROM files WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
  const rows = added.map((row) => ({ ...omit(row, 'sha256'), content: contents.get(row.id) }))
  await insertRows(client, 'files', rows)
}
