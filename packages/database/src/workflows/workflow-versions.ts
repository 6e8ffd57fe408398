import { mediaTypeOf, type WorkflowVersionOut } from '@workflow-service/contract'
import type { Connection, Queryable } from '../connection/index.ts'
import { type AuditChange, changedFields, isVisible, queryVisible, type Viewer } from '../organizations/index.ts'
import type { TriggerValues } from './workflow-detail.ts'

/** The newest versions of a workflow that are kept. */
const MAX_VERSIONS = 100
/**
 * The contents that they may have together: 16 MiB, or its part of 256 MiB if the organization has many workflows.
 * Otherwise its members could fill the disk: 1,000 workflows had 16 GB. The workflows of a call are of one
 * organization, and are counted once, if a version is beyond `MIN_BYTES`.
 */
const MAX_BYTES = `least(16, 256 / (
  SELECT count(*) FROM workflows WHERE organization_id = (
    SELECT organization_id FROM workflows WHERE id = ANY ($1::uuid[]) LIMIT 1
  )
)::float8) * 1048576`
const MIN_BYTES = 65_536
/** Of a file in a comparison: the page does not show more. */
const MAX_COMPARED_LENGTH = 100_000

export interface VersionDocument {
  readonly name: string
  readonly description: string
  readonly triggers: readonly (TriggerValues & { readonly id: string; readonly created_at: string })[]
  readonly files: readonly {
    readonly id: string
    readonly name: string
    readonly path: string[]
    readonly sha256: string
  }[]
}

// Every write of a content gives its file another version, so that the hash of an earlier content is noticed: a save
// of one hashes no others.
const HASH_FILES = `
  UPDATE files SET sha256 = encode(sha256(convert_to(content, 'UTF8')), 'hex'), hashed_version = version
  WHERE workflow_id = ANY ($1::uuid[]) AND hashed_version IS DISTINCT FROM version`

/** The document of `workflow` as it is now. */
const DOCUMENT = `json_build_object(
    'name', workflow.name,
    'description', workflow.description,
    'triggers', (
      SELECT coalesce(json_agg(json_build_object(
        'id', id, 'created_at', created_at, 'name', name, 'is_active', is_active,
        'trigger_source', json_build_object('slug', source_slug, 'name', source_name),
        'events', (
          SELECT coalesce(json_agg(json_build_object('slug', slug, 'name', name) ORDER BY position), '[]')
          FROM trigger_events WHERE trigger_id = triggers.id
        ),
        'filters', filters, 'input_message', input_message,
        'subagent_sources', (
          SELECT coalesce(json_agg(json_build_object('id', source_id, 'name', name, 'type', type) ORDER BY position), '[]')
          FROM subagent_sources WHERE trigger_id = triggers.id
        )
      ) ORDER BY created_at, id), '[]')
      FROM triggers WHERE triggers.workflow_id = workflow.id
    ),
    'files', (
      SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'path', path, 'sha256', sha256)
        ORDER BY path, name), '[]')
      FROM files WHERE files.workflow_id = workflow.id
    )
  )`

const differs = (part: string) =>
  `CASE WHEN last.document->>'${part}' IS DISTINCT FROM current.document->>'${part}' THEN '${part}' END`

// Under the lock of the workflow's row, so that numbers follow each other.
const RECORD = `
  WITH current AS MATERIALIZED (
    SELECT workflow.id AS workflow_id, ${DOCUMENT} AS document FROM workflows AS workflow WHERE id = ANY ($1::uuid[])
  ),
  last AS (
    SELECT DISTINCT ON (workflow_id) workflow_id, number, document FROM workflow_versions
    WHERE workflow_id = ANY ($1::uuid[]) ORDER BY workflow_id, number DESC
  ),
  changed AS MATERIALIZED (
    SELECT current.*, coalesce(last.number, 0) + 1 AS number,
      array_remove(ARRAY[${['name', 'description', 'triggers', 'files'].map(differs).join(', ')}], NULL) AS parts
    FROM current LEFT JOIN last ON last.workflow_id = current.workflow_id
    WHERE last.document::text IS DISTINCT FROM current.document::text
  ),
  contents AS (
    INSERT INTO workflow_version_files (workflow_id, sha256, content)
    SELECT files.workflow_id, files.sha256, files.content FROM files JOIN changed ON changed.workflow_id = files.workflow_id
    ON CONFLICT DO NOTHING
    RETURNING workflow_id, octet_length(content) AS bytes
  )
  INSERT INTO workflow_versions (workflow_id, number, saved_by, parts, document, bytes)
  SELECT workflow_id, number, $2, parts, document,
    octet_length(document::text) + (SELECT coalesce(sum(bytes), 0) FROM contents WHERE contents.workflow_id = changed.workflow_id)
  FROM changed`

const TRIM = `
  DELETE FROM workflow_versions USING (
    SELECT id, workflow_id, row_number() OVER newest AS position, sum(bytes) OVER newest AS bytes
    FROM workflow_versions WHERE workflow_id = ANY ($1::uuid[])
    WINDOW newest AS (PARTITION BY workflow_id ORDER BY number DESC)
  ) AS version
  WHERE workflow_versions.id = version.id
    AND version.position > 1
    AND (version.position > ${MAX_VERSIONS} OR version.bytes > ${MIN_BYTES} AND version.bytes > ${MAX_BYTES})`

const TRIM_CONTENTS = `
  DELETE FROM workflow_version_files AS content WHERE workflow_id = ANY ($1::uuid[]) AND NOT EXISTS (
    SELECT FROM workflow_versions AS version, json_array_elements(version.document->'files') AS file
    WHERE version.workflow_id = content.workflow_id AND file->>'sha256' = content.sha256
  )`

/**
 * Records the workflows as they are now, each as a new version unless the newest one is the same. Call it under the
 * locks of their rows: before a change with null, which records what a service of 1.0.0 saved, which has no versions,
 * and after it.
 */
export async function recordVersions(client: Queryable, workflowIds: readonly string[], savedBy: string | null) {
  if (workflowIds.length === 0) return
  await client.query(HASH_FILES, [workflowIds])
  const { rowCount } = await client.query(RECORD, [workflowIds, savedBy])
  if (!rowCount) return
  const trimmed = await client.query(TRIM, [workflowIds])
  if (trimmed.rowCount) await client.query(TRIM_CONTENTS, [workflowIds])
}

const VERSIONS = `
  FROM workflow_versions AS version
  JOIN workflows AS workflow ON workflow.id = version.workflow_id AND ${isVisible('workflow', '$2')}
  WHERE workflow.organization_id = $1 AND workflow.id = $3`

const VERSION = 'version.id, version.number, version.created_at, version.saved_by, version.parts'

/** The versions of a workflow that the viewer sees, newest first. */
export async function listVersions(db: Connection, viewer: Viewer, workflowId: string): Promise<WorkflowVersionOut[]> {
  const text = `SELECT ${VERSION} ${VERSIONS} ORDER BY version.number DESC`
  return await queryVisible(db, viewer, text, workflowId)
}

/** A version that the viewer sees, with the hashes of its files. */
export async function findVersion(
  db: Connection,
  viewer: Viewer,
  workflowId: string,
  versionId: string,
): Promise<(WorkflowVersionOut & { document: VersionDocument }) | undefined> {
  const text = `SELECT ${VERSION}, version.document ${VERSIONS} AND version.id = $4`
  return (
    await queryVisible<WorkflowVersionOut & { document: VersionDocument }>(db, viewer, text, workflowId, versionId)
  )[0]
}

/** A version that the viewer sees, compared with the one before it, or with the newest. */
export async function compareVersion(
  db: Connection,
  viewer: Viewer,
  { workflowId, versionId, with: other }: { workflowId: string; versionId: string; with: 'previous' | 'newest' },
): Promise<(WorkflowVersionOut & { changes: AuditChange[] }) | undefined> {
  const found = await findVersion(db, viewer, workflowId, versionId)
  if (!found) return undefined
  const { document, ...version } = found
  const isNewer = other === 'previous'
  const { rows } = await db.pool.query<{ document: VersionDocument }>(
    `SELECT document FROM workflow_versions WHERE workflow_id = $1 AND ($2::integer IS NULL OR number < $2)
     ORDER BY number DESC LIMIT 1`,
    [workflowId, isNewer ? version.number : null],
  )
  const compared = rows[0]?.document
  const changes = isNewer ? compareDocuments(compared, document) : compareDocuments(document, compared)
  const hashes = changes.flatMap((change) => [change.old, change.new].flatMap((value) => hashOf(value) ?? []))
  const contents = await readContents(db, workflowId, hashes, MAX_COMPARED_LENGTH)
  const withContent = (value: unknown) => contents.get(hashOf(value) ?? '') ?? value
  return {
    ...version,
    changes: changes.map(({ field, old, new: next }) => ({ field, old: withContent(old), new: withContent(next) })),
  }
}

/** The hash of a text, which `compareDocuments` has in place of the text. */
const hashOf = (value: unknown) => (value as { readonly sha256?: string } | null)?.sha256

/** The contents by their hashes, of each the first `maxLength` characters. */
export async function readContents(db: Connection, workflowId: string, hashes: readonly string[], maxLength = 2 ** 30) {
  const { rows } = await db.pool.query<{ sha256: string; content: string }>(
    `SELECT sha256, left(content, $3) || CASE WHEN length(content) > $3 THEN '…' ELSE '' END AS content
     FROM workflow_version_files WHERE workflow_id = $1 AND sha256 = ANY ($2)`,
    [workflowId, hashes, maxLength],
  )
  return new Map(rows.map(({ sha256, content }) => [sha256, content]))
}

/** What differs, field by field. A text is the hash of its whole length. */
function compareDocuments(old: VersionDocument | undefined, next: VersionDocument | undefined): AuditChange[] {
  const task = ({ name, description }: Partial<VersionDocument>) => ({ name, description })
  return [
    ...changedFields<object>(task(old ?? {}), task(next ?? {})),
    ...compareParts('trigger', old?.triggers, next?.triggers, ({ id: _id, created_at: _at, ...values }) => values),
    ...compareParts('file', old?.files, next?.files, ({ name, path, sha256 }) => ({
      name: [...path, name].join('/'),
      ...(mediaTypeOf(name) ? { content: `SHA-256 ${sha256}` } : { text: { sha256 } }),
    })),
  ]
}

function compareParts<Part extends { readonly id: string; readonly name: string }>(
  kind: string,
  old: readonly Part[] = [],
  next: readonly Part[] = [],
  valuesOf: (part: Part) => object,
): AuditChange[] {
  const [before, after] = [old, next].map((parts) => new Map(parts.map((part) => [part.id, part])))
  return [...new Map([...before!, ...after!]).values()].flatMap(({ id, name }) => {
    const [from, to] = [before!.get(id), after!.get(id)].map((part) => part && valuesOf(part))
    const fields = changedFields<object>(
      from ?? {},
      to ?? Object.fromEntries(Object.keys(from ?? {}).map((key) => [key, null])),
    )
    return fields.map((change) => ({ ...change, field: `${kind} ${name || 'API'}: ${change.field}` }))
  })
}
