import { setImmediate } from 'node:timers/promises'
import {
  collectWords,
  type Db,
  makeFilter,
  MAX_FILTER_WORDS,
  NIL_UUID,
  type Queryable,
  withAdvisoryLock,
} from '../connection/index.ts'
import { DELIVERY_TEXT, MAX_SOURCES } from '../deliveries/index.ts'
import type { SearchKind } from '../organizations/index.ts'
import { RUN_TEXT } from '../runs/index.ts'
import { organizationPages } from './organization-pages.ts'

/** An arbitrary number: the advisory lock of the process that indexes. */
const INDEX_LOCK = 1_970_324_837

/** Rows of a chunk, unless their words fill its filter before. A search compares all rows of a chunk that it reads. */
const CHUNK_ROWS = 128
/** Texts that are read at once, in bytes, and one more: a row has up to 600 KB. */
const BYTES_PER_READ = 1_000_000
/** Rows of an organization that are found at once, and of each of its sources: then others have their turn. */
const ROWS_PER_TURN = 40 * CHUNK_ROWS
const ROWS_OF_SOURCE = 4 * CHUNK_ROWS
/** The same in characters: 5,120 rows have up to 3 GB, for which others would wait an hour at the pace of the index. */
const CHARACTERS_PER_TURN = 10_000_000
/** After so many of a batch of texts, other requests of the process have their turn. */
const CHARACTERS_AT_ONCE = 50_000

/**
 * Only older rows are indexed: a row gets its time when its transaction begins, which has at most five statements of at
 * most 5 s each (see `createDatabase`), so that no earlier one is committed afterwards.
 */
const SETTLED = `now() - interval '30 seconds'`

interface Unindexed {
  readonly organizationId: string
  readonly kind: SearchKind
  /** Where the index ends. */
  readonly lastAt: Date
  readonly lastId: string
}

interface Indexing {
  /** The connection that holds the lock. */
  readonly client: Queryable
  readonly pace: () => Promise<void>
  readonly signal: AbortSignal | undefined
}

/**
 * SQL to read an organization's rows from that are newer than a position and settled, at most so many of it or of each
 * of its sources. They are numbered, the oldest first.
 */
function rowsAfter(kind: SearchKind, organizationId: string, position: string, limit: number): string {
  const rows = (from: string) => `LATERAL (
      SELECT id, created_at, row_number() OVER (ORDER BY created_at, id) AS number FROM ${from}
        AND (created_at, id) > ${position} AND created_at < ${SETTLED} ORDER BY created_at, id LIMIT ${limit}
    ) AS row`
  if (kind === 'runs') return rows(`starts WHERE organization_id = ${organizationId}`)
  const sources = `SELECT id FROM webhook_sources WHERE organization_id = ${organizationId} LIMIT ${MAX_SOURCES}`
  return `(${sources}) AS source CROSS JOIN ${rows('deliveries WHERE source_id = source.id')}`
}

/**
 * Adds the new rows of all organizations to the search index, in whole chunks, and begins again while one of them has
 * more. Only one process does it at a time: resolves to whether it is this one. An error of one organization is thrown
 * when the others are done.
 * @param options `pace` is called after each batch, and may pause.
 */
export async function indexForSearch(
  db: Db,
  { signal, pace = async () => {} }: { signal?: AbortSignal; pace?: () => Promise<void> } = {},
): Promise<boolean> {
  const errors: unknown[] = []
  const isDone = await withAdvisoryLock(db, INDEX_LOCK, async (client) => {
    while ((await indexInTurn({ client, pace, signal }, errors)) && errors.length === 0);
  })
  if (errors.length > 0) throw errors[0]
  return isDone
}

/** Indexes some rows of each organization. Resolves to whether one may have more. */
async function indexInTurn(indexing: Indexing, errors: unknown[]): Promise<boolean> {
  const { client, pace, signal } = indexing
  let hasMore = false
  for await (const ids of organizationPages({ pool: client })) {
    for (const kind of ['runs', 'deliveries'] as const) {
      const { rows: unindexed } = await client.query<Unindexed>({ ...LIST_UNINDEXED[kind], values: [ids, kind] })
      await pace()
      for (const each of unindexed) {
        try {
          if (await indexRows(indexing, each)) hasMore = true
        } catch (error) {
          errors.push(error)
        }
        if (signal?.aborted) return false
      }
    }
  }
  return hasMore
}

/** Indexes the next rows of an organization, as many as fill chunks. Resolves to whether it may have more. */
async function indexRows(
  { client, pace, signal }: Indexing,
  { organizationId, kind, lastAt, lastId }: Unindexed,
): Promise<boolean> {
  const values = [organizationId, lastAt, lastId]
  const { rows: found } = await client.query<{ id: string }>({ ...IDS_AFTER[kind], values })
  let words = new Set<string>()
  let chunk: string[] = []
  let count = CHUNK_ROWS
  let charactersOfTurn = 0
  // The rest does not fill a chunk.
  for (let at = 0; chunk.length + found.length - at >= CHUNK_ROWS;) {
    if (signal?.aborted) return false
    const ids = found.slice(at, at + count).map((row) => row.id)
    const { rows } = await client.query<{ id: string; text: string }>({ ...READ_TEXTS[kind], values: [ids] })
    // Rows are missing after long texts, which the next batch has, and those that were deleted meanwhile.
    const isShort = rows.length < ids.length
    at += isShort ? ids.indexOf(rows.at(-1)?.id ?? ids.at(-1)!) + 1 : ids.length
    count = isShort ? Math.max(rows.length, 1) : Math.min(2 * count, CHUNK_ROWS)
    let characters = 0
    for (const { id, text } of rows) {
      await collectWords(text, words)
      characters += text.length
      charactersOfTurn += text.length
      if (characters > CHARACTERS_AT_ONCE) {
        await setImmediate()
        characters = 0
      }
      chunk.push(id)
      if (chunk.length === CHUNK_ROWS || words.size >= MAX_FILTER_WORDS) {
        const written = await client.query({
          ...WRITE_CHUNK[kind],
          values: [organizationId, kind, chunk, makeFilter(words)],
        })
        // A row, or the organization, was deleted meanwhile: the next round reads them again.
        if (written.rowCount !== 1) return false
        if (charactersOfTurn > CHARACTERS_PER_TURN) return true
        ;[chunk, words] = [[], new Set()]
      }
    }
    await pace()
  }
  return found.length >= ROWS_OF_SOURCE
}

/** The statement of each kind. Named, because to plan it takes longer than to execute it. */
function eachKind(name: string, text: (kind: SearchKind) => string) {
  const named = (kind: SearchKind) => ({ name: `search_${name}_${kind}`, text: text(kind) })
  return { runs: named('runs'), deliveries: named('deliveries') }
}

const LIST_UNINDEXED = eachKind(
  'unindexed',
  (kind) => `SELECT organization.id AS "organizationId", $2 AS kind, indexed.at AS "lastAt", indexed.id AS "lastId"
  FROM unnest($1::uuid[]) AS organization (id)
  CROSS JOIN LATERAL (
    SELECT coalesce(max(last_at), '-infinity') AS at, coalesce(max(last_id::text), '${NIL_UUID}')::uuid AS id FROM (
      SELECT last_at, last_id FROM search_chunks WHERE organization_id = organization.id AND kind = $2
      ORDER BY first_at DESC, first_id DESC LIMIT 1
    ) AS newest
  ) AS indexed
  CROSS JOIN LATERAL (
    SELECT FROM ${rowsAfter(kind, 'organization.id', '(indexed.at, indexed.id)', CHUNK_ROWS)}
    OFFSET ${CHUNK_ROWS - 1} LIMIT 1
  ) AS unindexed`,
)

// With many sources, only the rows up to where one of them may have more: the first 5,000 of each of 1,000 sources were
// 5,000,000.
const IDS_AFTER = eachKind('ids_of', (kind) => {
  const limit = kind === 'runs' ? ROWS_PER_TURN : ROWS_OF_SOURCE
  return `WITH oldest AS MATERIALIZED (
      SELECT row.* FROM ${rowsAfter(kind, '$1', '($2, $3)', limit)}
    ),
    complete AS (
      SELECT created_at, id FROM oldest WHERE number = ${limit} ORDER BY created_at, id LIMIT 1
    )
    SELECT oldest.id FROM oldest LEFT JOIN complete ON true
    WHERE complete.id IS NULL OR (oldest.created_at, oldest.id) <= (complete.created_at, complete.id)
    ORDER BY oldest.created_at, oldest.id LIMIT ${ROWS_PER_TURN}`
})

const TEXTS = {
  runs: `SELECT start.id, start.created_at, concat_ws(' ', start.workflow_id, ${RUN_TEXT}) AS text
    FROM starts AS start WHERE start.id = ANY ($1)`,
  deliveries: `SELECT delivery.id, delivery.created_at,
      concat_ws(' ', delivery.source_id, start.workflow_id, ${DELIVERY_TEXT}) AS text
    FROM deliveries AS delivery LEFT JOIN starts AS start ON start.id = delivery.run_id
    WHERE delivery.id = ANY ($1)`,
}

// OFFSET 0: else PostgreSQL makes each text once for its length and once for itself.
const READ_TEXTS = eachKind(
  'texts_of',
  (kind) => `SELECT id, text FROM (
    SELECT id, created_at, text, sum(octet_length(text)) OVER (ORDER BY created_at, id) - octet_length(text) AS bytes_before
    FROM (${TEXTS[kind]} OFFSET 0) AS read
  ) AS counted WHERE bytes_before < ${BYTES_PER_READ} ORDER BY created_at, id`,
)

// The index can be made again from the rows, and without its last chunks after a crash it is as it was before them.
const WRITE_CHUNK = eachKind(
  'chunk_of',
  (kind) => `WITH row AS (
    SELECT count(*), min(created_at) AS first_at, max(created_at) AS last_at FROM ${kind === 'runs' ? 'starts' : 'deliveries'}
    WHERE id = ANY ($3)
  )
  INSERT INTO search_chunks (organization_id, kind, first_at, first_id, last_at, last_id, ids, words)
  SELECT id, $2, first_at, $3[1], last_at, $3[cardinality($3)], $3, $4 FROM organizations, row
  WHERE id = $1 AND count = cardinality($3) AND set_config('synchronous_commit', 'off', true) = 'off'
  ON CONFLICT DO NOTHING`,
)

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
