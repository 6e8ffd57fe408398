import { setImmediate } from 'node:timers/promises'
import {
  collectWords,
  type Db,
  makeFilter,
  MAX_FILTER_WORDS,
  NIL_UUID,
  type paging,
  withAdvisoryLock,
} from '../connection/index.ts'
import { DELIVERY_TEXT, MAX_SOURCES } from '../deliveries/index.ts'
import type { SearchKind } from '../organizations/index.ts'
import { RUN_TEXT } from '../runs/index.ts'

/** An arbitrary number: the advisory lock of the process that indexes. */
const INDEX_LOCK = 1_970_324_837

/** Rows of a chunk, unless their words fill its filter before. A search compares all rows of a chunk that it reads. */
const CHUNK_ROWS = 128
/** A row has up to 600 KB of text. */
const ROWS_PER_READ = 16
/** Rows of an organization that are found at once, and of each of its sources: then others have their turn. */
const ROWS_PER_TURN = 40 * CHUNK_ROWS
const ROWS_OF_SOURCE = 4 * CHUNK_ROWS
/** After a text that is longer, other requests of the process have their turn. */
const LONG_TEXT = 10_000
/** Organizations that are looked at in one statement. */
const ORGANIZATIONS = 500

/**
 * Only older rows are indexed: a row gets its time when its transaction begins, which takes at most 10 s (see
 * `createDatabase`), so that no earlier one is committed afterwards.
 */
const SETTLED = `now() - interval '30 seconds'`

interface Unindexed extends paging.TimePosition {
  readonly organizationId: string
  readonly kind: SearchKind
}

/** SQL for the rows of an organization, `$1`, that are newer than a position and settled, oldest first. */
function rowsAfter(kind: SearchKind, organizationId: string, position: string, limit: number): string {
  const rows = (from: string, where: string) => `SELECT id, created_at FROM ${from} WHERE ${where}
    AND (created_at, id) > ${position} AND created_at < ${SETTLED} ORDER BY created_at, id LIMIT ${limit}`
  if (kind === 'runs') return rows('starts', `organization_id = ${organizationId}`)
  return `SELECT of_source.* FROM (
      SELECT id FROM webhook_sources WHERE organization_id = ${organizationId} LIMIT ${MAX_SOURCES}
    ) AS source
    CROSS JOIN LATERAL (${rows('deliveries', 'source_id = source.id')}) AS of_source
    ORDER BY of_source.created_at, of_source.id LIMIT ${limit}`
}

/**
 * SQL for the positions of the oldest of these rows. With many sources, only those up to where one of them may have
 * more: the first 5,000 of each of 1,000 sources were 5,000,000.
 */
function positionsAfter(kind: SearchKind): string {
  if (kind === 'runs') return rowsAfter(kind, '$1', '($2, $3)', ROWS_PER_TURN)
  return `WITH of_source AS MATERIALIZED (
      SELECT of_source.* FROM (
        SELECT id FROM webhook_sources WHERE organization_id = $1 LIMIT ${MAX_SOURCES}
      ) AS source
      CROSS JOIN LATERAL (
        SELECT id, created_at, row_number() OVER (ORDER BY created_at, id) AS number FROM deliveries
        WHERE source_id = source.id AND (created_at, id) > ($2, $3) AND created_at < ${SETTLED}
        ORDER BY created_at, id LIMIT ${ROWS_OF_SOURCE}
      ) AS of_source
    ),
    complete AS (
      SELECT created_at, id FROM of_source WHERE number = ${ROWS_OF_SOURCE} ORDER BY created_at, id LIMIT 1
    )
    SELECT of_source.id, of_source.created_at FROM of_source LEFT JOIN complete ON true
    WHERE complete.id IS NULL OR (of_source.created_at, of_source.id) <= (complete.created_at, complete.id)
    ORDER BY of_source.created_at, of_source.id LIMIT ${ROWS_PER_TURN}`
}

/**
 * Adds the new rows of all organizations to the search index, in whole chunks, and begins again while one of them has
 * more. Only one process does it at a time. An error of one organization is thrown when the others are done.
 */
export async function indexForSearch(db: Db, signal?: AbortSignal): Promise<void> {
  const errors: unknown[] = []
  await withAdvisoryLock(db, INDEX_LOCK, async () => {
    while (errors.length === 0 && (await indexInTurn(db, errors, signal)));
  })
  if (errors.length > 0) throw errors[0]
}

/** Indexes some rows of each organization. Resolves to whether one may have more. */
async function indexInTurn(db: Db, errors: unknown[], signal: AbortSignal | undefined): Promise<boolean> {
  let hasMore = false
  for (let [after, isLast] = [NIL_UUID, false]; !isLast;) {
    const { rows } = await db.pool.query<{ id: string }>(
      'SELECT id FROM organizations WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT $2',
      [after, ORGANIZATIONS],
    )
    const ids = rows.map(({ id }) => id)
    for (const kind of ['runs', 'deliveries'] as const) {
      for (const position of await listUnindexed(db, kind, ids)) {
        if (signal?.aborted) return false
        try {
          if (await indexRows(db, position, signal)) hasMore = true
        } catch (error) {
          errors.push(error)
        }
      }
    }
    after = ids.at(-1) ?? after
    isLast = ids.length < ORGANIZATIONS
  }
  return hasMore
}

/** Those of the organizations that have enough new rows, and where the index of each ends. */
async function listUnindexed(db: Db, kind: SearchKind, ids: readonly string[]): Promise<Unindexed[]> {
  const { rows } = await db.pool.query<Unindexed>(
    `SELECT organization.id AS "organizationId", $2 AS kind, indexed.at AS "createdAt", indexed.id
     FROM unnest($1::uuid[]) AS organization (id)
     CROSS JOIN LATERAL (
       SELECT coalesce(max(last_at), '-infinity') AS at, coalesce(max(last_id::text), '${NIL_UUID}')::uuid AS id FROM (
         SELECT last_at, last_id FROM search_chunks WHERE organization_id = organization.id AND kind = $2
         ORDER BY first_at DESC, first_id DESC LIMIT 1
       ) AS newest
     ) AS indexed
     WHERE (
       SELECT true FROM (${rowsAfter(kind, 'organization.id', '(indexed.at, indexed.id)', CHUNK_ROWS)}) AS unindexed
       OFFSET ${CHUNK_ROWS - 1} LIMIT 1
     )`,
    [ids, kind],
  )
  return rows
}

/** Indexes the next rows of an organization, as many as fill chunks. Resolves to whether it may have more. */
async function indexRows(
  db: Db,
  { organizationId, kind, createdAt, id }: Unindexed,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { rows: found } = await db.pool.query<{ id: string }>({
    name: `search_positions_of_${kind}`,
    text: POSITIONS_AFTER[kind],
    values: [organizationId, createdAt, id],
  })
  let words = new Set<string>()
  let chunk: paging.TimePosition[] = []
  for (let at = 0; at < found.length; at += ROWS_PER_READ) {
    if (signal?.aborted) return false
    // The rest does not fill a chunk.
    if (chunk.length + found.length - at < CHUNK_ROWS) break
    const { rows } = await db.pool.query<paging.TimePosition & { text: string }>({
      name: `search_texts_of_${kind}`,
      text: READ_TEXTS[kind],
      values: [found.slice(at, at + ROWS_PER_READ).map((row) => row.id)],
    })
    for (const { text, ...row } of rows) {
      await collectWords(text, words)
      chunk.push(row)
      if (chunk.length === CHUNK_ROWS || words.size >= MAX_FILTER_WORDS) {
        if (!(await writeChunk(db, { organizationId, kind, rows: chunk, words }))) return false
        ;[chunk, words] = [[], new Set()]
      }
      if (text.length > LONG_TEXT) await setImmediate()
    }
  }
  return found.length >= ROWS_OF_SOURCE
}

// Statements are named, because to plan them takes longer than to execute them.
const POSITIONS_AFTER: Readonly<Record<SearchKind, string>> = {
  runs: positionsAfter('runs'),
  deliveries: positionsAfter('deliveries'),
}

const READ_TEXTS: Readonly<Record<SearchKind, string>> = {
  runs: `SELECT start.id, start.created_at AS "createdAt", concat_ws(' ', start.workflow_id, ${RUN_TEXT}) AS text
    FROM starts AS start WHERE start.id = ANY ($1) ORDER BY start.created_at, start.id`,
  deliveries: `SELECT delivery.id, delivery.created_at AS "createdAt",
      concat_ws(' ', delivery.source_id, start.workflow_id, ${DELIVERY_TEXT}) AS text
    FROM deliveries AS delivery LEFT JOIN starts AS start ON start.id = delivery.run_id
    WHERE delivery.id = ANY ($1) ORDER BY delivery.created_at, delivery.id`,
}

interface Chunk {
  readonly organizationId: string
  readonly kind: SearchKind
  readonly rows: readonly paging.TimePosition[]
  readonly words: ReadonlySet<string>
}

/** Resolves to false if a row, or the organization, was deleted meanwhile: the next round reads them again. */
async function writeChunk(db: Db, { organizationId, kind, rows, words }: Chunk): Promise<boolean> {
  const [first, last] = [rows[0]!, rows.at(-1)!]
  const ids = rows.map(({ id }) => id)
  const values = [organizationId, kind, first.createdAt, first.id, last.createdAt, last.id, ids, makeFilter(words)]
  const { rowCount } = await db.pool.query({
    name: `search_chunk_of_${kind}`,
    text: `INSERT INTO search_chunks (organization_id, kind, first_at, first_id, last_at, last_id, ids, words)
     SELECT id, $2, $3, $4, $5, $6, $7, $8 FROM organizations
     WHERE id = $1 AND (SELECT count(*) FROM ${kind === 'runs' ? 'starts' : 'deliveries'} WHERE id = ANY ($7)) = cardinality($7)
     ON CONFLICT DO NOTHING`,
    values,
  })
  return rowCount === 1
}

/** Removes chunks whose rows are all deleted: those older than the oldest row. Resolves to how many. */
export async function deleteOldSearchChunks(db: Db, limit: number): Promise<number> {
  const { rowCount } = await db.pool.query(
    `DELETE FROM search_chunks WHERE (organization_id, kind, first_at, first_id) IN (
       SELECT chunk.organization_id, chunk.kind, chunk.first_at, chunk.first_id
       FROM organizations AS organization
       CROSS JOIN LATERAL (
         SELECT 'runs' AS kind, (
           SELECT created_at FROM starts WHERE organization_id = organization.id ORDER BY created_at, id LIMIT 1
         ) AS at
         UNION ALL SELECT 'deliveries', (
           SELECT min(of_source.created_at) FROM webhook_sources AS source CROSS JOIN LATERAL (
             SELECT created_at FROM deliveries WHERE source_id = source.id ORDER BY created_at, id LIMIT 1
           ) AS of_source WHERE source.organization_id = organization.id
         )
       ) AS oldest
       JOIN search_chunks AS chunk ON chunk.organization_id = organization.id AND chunk.kind = oldest.kind
         AND chunk.first_at < coalesce(oldest.at, 'infinity') AND chunk.last_at < coalesce(oldest.at, 'infinity')
       LIMIT $1
     )`,
    [limit],
  )
  return rowCount ?? 0
}
