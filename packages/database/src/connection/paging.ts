import { NIL_UUID } from './ids.ts'

/** A position in a list that is sorted by time and id, newest first. */
export interface TimePosition {
  readonly createdAt: Date
  readonly id: string
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Returns time and id for the condition `(created_at, id) < ($n, $m)`: entries after `after` in the list and before
 * `until`. One condition for both, because with a second one PostgreSQL may begin to read the index there, and read all
 * newer entries.
 */
export function positionParams(after: TimePosition | undefined, until?: Date): readonly [Date | 'infinity', string] {
  if (after && (!until || after.createdAt < until)) return [after.createdAt, after.id]
  return until ? [until, NIL_UUID] : ['infinity', LAST_ID]
}

/** A page of a list of which the viewer may not see all entries. */
export interface ReadPage<Row, Position = TimePosition> {
  readonly rows: readonly Row[]
  /** After which entry the next page begins, if others may follow. */
  readonly next: Position | undefined
}

/** Entries that are read at once for a page of a member. */
const MAX_CHUNK = 1_000

/**
 * Reads a page of the entries that the viewer sees: as many as fit, then more and more at a time until the page is
 * full. Only a page for which `maxRead` entries had few visible ones has fewer than the limit although others may
 * follow.
 */
export async function readVisible<Row extends { readonly isVisible: boolean }, Position>(
  { limit, after, maxRead }: { limit: number; after: Position | undefined; maxRead: number },
  read: (after: Position | undefined, count: number) => Promise<readonly Row[]>,
  positionOf: (row: Row) => Position,
): Promise<ReadPage<Row, Position>> {
  const visible: Row[] = []
  let position = after
  let count = limit + 1
  for (let readCount = 0; readCount < maxRead; count = Math.min(4 * count, MAX_CHUNK)) {
    const chunk = await read(position, count)
    visible.push(...chunk.filter((row) => row.isVisible))
    const rows = visible.slice(0, limit)
    const last = chunk.at(-1)
    if (visible.length > limit) return { rows, next: positionOf(rows.at(-1)!) }
    if (last === undefined || chunk.length < count) return { rows, next: undefined }
    position = positionOf(last)
    readCount += count
  }
  return { rows: visible, next: position }
}
