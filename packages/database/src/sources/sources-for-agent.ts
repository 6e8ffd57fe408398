import { column, type Db, type RowOfStatement, runStatement, sql, statement } from '../connection/index.ts'

/** The most sources, and bytes of their descriptions and examples, that an agent gets without a search. */
const MAX_COUNT = 20
const MAX_BYTES = 16_384
/**
 * A stored example of more bytes counts as too large: it is compressed, and its size is not known without reading it.
 */
const COMPRESSED_MAX_BYTES = 2_048

/**
 * SQL for the sources of these organizations (rows with an `id`), as `listSmallSources` and the acquisition of sessions
 * read them.
 */
export const smallSources = (organizations: string) =>
  sql('sources/small-sources', {
    ORGANIZATIONS: organizations,
    COMPRESSED_MAX_BYTES,
    // More than MAX_BYTES, regardless of the others.
    TOO_LARGE: 1_048_576,
    READ_MAX: MAX_COUNT + 1,
    MAX_COUNT,
    MAX_BYTES,
  })

const LIST_SMALL_SOURCES = statement(
  'sources/list-small-sources',
  { organizationId: column.uuid, sources: column.json<SourceForAgent[]>() },
  { SMALL_SOURCES: smallSources('(SELECT DISTINCT unnest($1::uuid[]) AS id)') },
)

/**
 * The sources of several organizations that are not deleted, by organization, sorted by name in code point order. An
 * organization whose sources are many or large has no entry: `listSourceNames` and `readSources` read those in parts.
 */
export async function listSmallSources(
  db: Db,
  organizationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly SourceForAgent[]>> {
  const { rows } = await runStatement(db, LIST_SMALL_SOURCES, [organizationIds])
  return new Map(rows.map(({ organizationId, sources }) => [organizationId, sources]))
}

const LIST_SOURCE_NAMES = statement('sources/list-source-names', { id: column.uuid, name: column.text() })
/** A webhook source that an agent may read. */
export type SourceName = RowOfStatement<typeof LIST_SOURCE_NAMES>

/** The names of the organization's sources that are not deleted, sorted by name in code point order. */
export async function listSourceNames(db: Db, organizationId: string) {
  return (await runStatement(db, LIST_SOURCE_NAMES, [organizationId])).rows
}

/** A source that a search found, with the first 1,000 characters of its description. */
export interface FoundSource extends SourceName {
  readonly description: string
}

/**
 * The organization's sources whose name or description has one of the words in lower case; first those with the most of
 * them.
 */
export async function searchSources(db: Db, organizationId: string, words: readonly string[], limit: number) {
  // OFFSET 0 keeps the planner from computing the lower case of a description again for each word.
  const { rows } = await db.pool.query<FoundSource>(
    `SELECT id, name, left(description, 1000) AS description
     FROM (
       SELECT id, name, description, lower(name || ' ' || description) AS searched FROM webhook_sources
       WHERE organization_id = $1 AND deleted_at IS NULL
       OFFSET 0
     ) AS source, LATERAL (
       SELECT count(*) AS hits FROM unnest($2::text[]) AS word WHERE position(word IN searched) > 0
     ) AS counted
     WHERE hits > 0
     ORDER BY hits DESC, name COLLATE "C", id LIMIT $3`,
    [organizationId, words, limit],
  )
  return rows
}

const READ_SOURCES = statement('sources/read-sources', {
  id: column.uuid,
  name: column.text(),
  description: column.text(),
  exampleRequestBody: column.json<Record<string, unknown>>(),
})
/** What an agent may know of a source: neither the URL nor the secret. */
export type SourceForAgent = RowOfStatement<typeof READ_SOURCES>

/** Those of the sources that are the organization's and not deleted, in the order of `ids`. */
export async function readSources(db: Db, organizationId: string, ids: readonly string[]) {
  return (await runStatement(db, READ_SOURCES, [organizationId, ids])).rows
}

/** The example of one of the organization's sources. */
export async function readExample(db: Db, organizationId: string, { id }: Pick<SourceName, 'id'>) {
  const [source] = await readSources(db, organizationId, [id])
  return source?.exampleRequestBody
}
