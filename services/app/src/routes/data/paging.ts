import { type FieldError, LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import type { ReadPage, TimePosition } from '@workflow-service/database'

/** Where a list continues: after an entry at a time, or after a number. */
export type Position = TimePosition | { readonly number: number }

const CURSOR = /^(\d{1,15})\.([0-9a-f-]{36})$|^(\d{1,15})$/

/** Encodes a position. The cursor's encoding is opaque and may change. */
export function toCursor(position: Position): string {
  const text = 'number' in position ? String(position.number) : `${position.createdAt.getTime()}.${position.id}`
  return Buffer.from(text, 'latin1').toString('base64url')
}

/** Decodes a position; undefined if the text is not a cursor. */
export function readCursor(cursor: string): Position | undefined {
  const [, time, id, number] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  if (number !== undefined) return { number: Number(number) }
  return time === undefined || id === undefined ? undefined : { createdAt: new Date(Number(time)), id }
}

/** Checks that the cursor is one of these lists. An empty cursor means the first page. */
export function checkCursor({ cursor }: { readonly cursor?: string | undefined }): readonly FieldError[] {
  if (!cursor || readCursor(cursor)) return []
  const message = 'is not the next_cursor of a page; omit it for the first page'
  return [{ field: 'cursor', code: 'invalid_cursor', message }]
}

/** Where a list by time continues; undefined for its beginning. */
export function positionInTime(cursor: string | undefined): TimePosition | undefined {
  const position = cursor ? readCursor(cursor) : undefined
  return position && 'createdAt' in position ? position : undefined
}

/** Reads one entry more than the page has, which shows whether there is another page, and returns the page. */
export async function toPage<Row>(
  limit: number | undefined,
  read: (limit: number) => Promise<readonly Row[]>,
  positionOf: (row: Row) => Position,
): Promise<{ data: Row[]; pagination: { has_more: boolean; next_cursor: string | null } }> {
  const size = limit ?? LIST_DEFAULT_LIMIT
  const rows = await read(size + 1)
  const data = rows.slice(0, size)
  const last = data.at(-1)
  const hasMore = rows.length > size
  return { data, pagination: { has_more: hasMore, next_cursor: hasMore && last ? toCursor(positionOf(last)) : null } }
}

/** Returns the page of a list in which the viewer may not see every entry. */
export function toVisiblePage<Row>({ rows, next }: ReadPage<Row>) {
  return { data: [...rows], pagination: { has_more: next !== undefined, next_cursor: next ? toCursor(next) : null } }
}

/** The position in time of an entry of the contract. */
export function timeOf({ created_at: createdAt, id }: { readonly created_at: string; readonly id: string }): Position {
  return { createdAt: new Date(createdAt), id }
}

/** Parses an optional time of a query. */
export function toDate(time: string | undefined): Date | undefined {
  return time === undefined ? undefined : new Date(time)
}
