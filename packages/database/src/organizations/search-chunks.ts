import { escapeLiteral } from 'pg'
import { type Db, FULL_FILTER, mayHaveWords, NIL_UUID, paging, type Queryable } from '../connection/index.ts'

/** What is indexed for the search. */
export type SearchKind = 'deliveries' | 'runs'

/** Which rows to compare: those that are newer than the index, or these. */
export type Candidates =
  | { readonly newerThan: paging.TimePosition | undefined; readonly count: number }
  | { readonly ids: readonly string[] }

/** A row that was compared. */
export interface Compared extends paging.TimePosition {
  /** Whether it matches, and the viewer sees it. */
  readonly isVisible: boolean
}

/** Which of the rows to read. */
interface SearchPage {
  readonly limit: number
  readonly after: paging.TimePosition | undefined
  readonly since: Date | undefined
  readonly until: Date | undefined
}

/** Rows that are compared for a page, and chunks whose filters are read; the next page goes on. */
const MAX_COMPARED = 20_000
/** The same without words. Deliveries take longer: they are read of each source. */
const MAX_READ: Readonly<Record<SearchKind, number>> = { runs: 20_000, deliveries: 4_000 }
const MAX_FILTERS = 40_000
const MAX_CHUNKS_AT_ONCE = 16

/**
 * Returns the rows of a table with these ids, in place of the table. OFFSET 0: for a thousand ids, a generic plan may
 * read all rows of the organization instead.
 */
export function rowsWithIds(table: string, ids: readonly string[]): string {
  return `(SELECT * FROM ${table} WHERE id = ANY (${escapeLiteral(`{${ids.join()}}`)}::uuid[]) OFFSET 0) AS ${table}`
}

const isNewer = (a: paging.TimePosition, b: paging.TimePosition) =>
  a.createdAt.getTime() === b.createdAt.getTime() ? a.id > b.id : a.createdAt > b.createdAt

/**
 * Reads a page of rows by the search index, newest first: rows that are not in the index yet, and then those of the
 * chunks that may have all words. Without words, it reads all rows. `read` compares candidates after a position; it
 * returns them newest first, of `ids` only the visible ones.
 */
export async function readFound(
  db: Db,
  { organizationId, kind, words }: { organizationId: string; kind: SearchKind; words: ReadonlySet<string> },
  { limit, after, since, until }: SearchPage,
  read: (candidates: Candidates, after: paging.TimePosition | undefined) => Promise<readonly Compared[]>,
): Promise<paging.ReadPage<string>> {
  const ends = words.size > 0 ? await findEnds(db, { organizationId, kind, after }) : undefined
  const { last, floor } = ends ?? {}
  const found: Compared[] = []
  if (!last || !after || isNewer(after, last)) {
    const page = { limit, after, maxRead: ends ? MAX_COMPARED : MAX_READ[kind] }
    const readNew = async (position: paging.TimePosition | undefined, count: number) =>
      await read({ newerThan: last, count }, position)
    const { rows, next } = await paging.readVisible(page, readNew, (row) => row)
    if (next || !last) return { rows: rows.map(({ id }) => id), next }
    found.push(...rows)
  }
  const condition = mayHaveWords(words)
  // Not a chunk that was written since: its rows were compared as new ones.
  let [position, operator] = after && !isNewer(after, last) ? [after, '<'] : [last, '<=']
  for (let [compared, count] = [0, 1]; compared < MAX_COMPARED; count = Math.min(2 * count, MAX_CHUNKS_AT_ONCE)) {
    const { rows: chunks } = await db.pool.query<paging.TimePosition & { ids: string[] }>(
      `SELECT first_at AS "createdAt", first_id AS id, ids FROM search_chunks
       WHERE organization_id = $1 AND kind = $2 AND (first_at, first_id) ${operator} ($3, $4)
         AND (first_at, first_id) >= ($5, $6)
         AND last_at >= $7 AND ${condition}
       ORDER BY first_at DESC, first_id DESC LIMIT ${count}`,
      [
        organizationId,
        kind,
        ...paging.positionParams(position, until),
        floor?.createdAt ?? '-infinity',
        floor?.id ?? NIL_UUID,
        since ?? '-infinity',
      ],
    )
    const ids = chunks.flatMap((chunk) => chunk.ids)
    if (ids.length > 0) found.push(...(await read({ ids }, after)))
    if (found.length > limit) {
      const rows = found.slice(0, limit)
      return { rows: rows.map(({ id }) => id), next: rows.at(-1) }
    }
    if (chunks.length < count) return { rows: found.map(({ id }) => id), next: floor }
    compared += ids.length
    ;[position, operator] = [chunks.at(-1)!, '<']
  }
  return { rows: found.map(({ id }) => id), next: position }
}

/** The newest row in the index, and the oldest row of the last chunk that is read for a page, if more follow. */
async function findEnds(
  db: Db,
  { organizationId, kind, after }: { organizationId: string; kind: SearchKind; after: paging.TimePosition | undefined },
): Promise<{ last: paging.TimePosition | undefined; floor: paging.TimePosition | undefined }> {
  const of = `organization_id = $1 AND kind = ${escapeLiteral(kind)}`
  const newest = 'ORDER BY first_at DESC, first_id DESC'
  const { rows } = await db.pool.query<paging.TimePosition & { isLast: boolean }>(
    `(SELECT true AS "isLast", last_at AS "createdAt", last_id AS id FROM search_chunks WHERE ${of} ${newest} LIMIT 1)
     UNION ALL (
       SELECT false, first_at, first_id FROM search_chunks
       WHERE ${of} AND (first_at, first_id) < ($2, $3) ${newest} OFFSET ${MAX_FILTERS} LIMIT 1
     )`,
    [organizationId, ...paging.positionParams(after)],
  )
  return { last: rows.find(({ isLast }) => isLast), floor: rows.find(({ isLast }) => !isLast) }
}

/**
 * Removes deleted rows from the search index, with the words of their chunks: the others of a chunk are compared by
 * every search from then on.
 */
export async function deleteFromSearch(
  client: Queryable,
  { organizationId, kind }: { organizationId: string; kind: SearchKind },
  rows: readonly paging.TimePosition[],
): Promise<void> {
  const ids = rows.map(({ id }) => id)
  await client.query(
    `UPDATE search_chunks SET words = $5, ids = ARRAY(SELECT id FROM unnest(ids) AS row (id) WHERE id <> ALL ($3::uuid[]))
     WHERE organization_id = $1 AND kind = $2 AND ids && $3 AND (first_at, first_id) IN (
       SELECT chunk.first_at, chunk.first_id FROM unnest($3, $4::timestamptz[]) AS deleted (id, at)
       CROSS JOIN LATERAL (
         SELECT first_at, first_id FROM search_chunks
         WHERE organization_id = $1 AND kind = $2 AND (first_at, first_id) <= (deleted.at, deleted.id)
         ORDER BY first_at DESC, first_id DESC LIMIT 1
       ) AS chunk
     )`,
    [organizationId, kind, ids, rows.map(({ createdAt }) => createdAt), FULL_FILTER],
  )
}
