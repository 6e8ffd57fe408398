import { hash } from 'node:crypto'
import { LIST_DEFAULT_LIMIT, type PageInfo } from '@workflow-service/contract'
import type { Static } from '@workflow-service/contract/type'
import { invalidFields } from './errors.ts'

/** The positions of a list, as its cursors have them. */
export interface CursorFormat<Position> {
  /** Names the list with all that a cursor is bound to, such as the organization: others are refused. */
  readonly list: string
  readonly pattern: RegExp
  readonly write: (position: Position) => string
  /** Gets the groups of the pattern; undefined for a position that PostgreSQL does not read. */
  readonly read: (...groups: string[]) => Position | undefined
}

export const UUID_OF_CURSOR = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
/** The years 1 to 9999. PostgreSQL has no year 0, and `Date.toISOString` writes later years with a sign. */
const MIN_TIME_MS = Date.parse('0001-01-01T00:00:00.000Z')
const MAX_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z')
const DIGEST_LENGTH = 11

/** The format of a list by time and id. */
export function byTime(list: string): CursorFormat<{ readonly createdAt: Date; readonly id: string }> {
  return {
    list,
    pattern: new RegExp(`^(-?\\d{1,15})\\.(${UUID_OF_CURSOR})$`),
    write: ({ createdAt, id }) => `${createdAt.getTime()}.${id}`,
    read: (time = '', id = '') => {
      const timeMs = Number(time)
      return timeMs < MIN_TIME_MS || timeMs > MAX_TIME_MS ? undefined : { createdAt: new Date(timeMs), id }
    },
  }
}

/** Encodes a position as an opaque cursor. It is not secret: a cursor only leads through the caller's own list. */
export function encodeCursor<Position>({ list, write }: CursorFormat<Position>, position: Position): string {
  return seal(list, write(position))
}

/** Decodes a cursor; undefined for any text that is no cursor of this list. */
export function decodeCursor<Position>(
  { list, pattern, read }: CursorFormat<Position>,
  cursor: string,
): Position | undefined {
  const text = Buffer.from(cursor, 'base64url').toString().slice(DIGEST_LENGTH)
  // Base64 decoders skip characters outside their alphabet: only the one encoding of a text is a cursor.
  const match = seal(list, text) === cursor ? pattern.exec(text) : null
  return match ? read(...match.slice(1)) : undefined
}

/** The query parameters of a list. An empty cursor is that of the first page. */
export interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
}

/** Which page to read: so many entries after that position. */
export interface PageRead<Position> {
  readonly limit: number
  readonly after: Position | undefined
}

/**
 * The response of a list: the page that `read` returns, and the cursor of the next one.
 * @throws ApiError 422 on `cursor`
 */
export async function pageResponse<Row, Position>(
  { limit = LIST_DEFAULT_LIMIT, cursor }: PageQuery,
  format: CursorFormat<Position>,
  read: (page: PageRead<Position>) => Promise<{ readonly rows: readonly Row[]; readonly next: Position | undefined }>,
) {
  const { rows, next } = await read({ limit, after: readCursor(format, cursor) })
  return { data: [...rows], pagination: toPageInfo(format, next) }
}

/** Reads the position of a query; undefined for the first page. @throws ApiError 422 on `cursor` */
export function readCursor<Position>(format: CursorFormat<Position>, cursor = ''): Position | undefined {
  const position = cursor === '' ? undefined : decodeCursor(format, cursor)
  if (cursor === '' || position !== undefined) return position
  const message = 'is not the next_cursor of a page of this list; omit it for the first page'
  throw invalidFields([{ field: 'cursor', code: 'invalid_cursor', message }])
}

/** The end of a page, for the position of its last entry if others follow. */
export function toPageInfo<Position>(
  format: CursorFormat<Position>,
  next: Position | undefined,
): Static<typeof PageInfo> {
  return { next_cursor: next === undefined ? null : encodeCursor(format, next), has_more: next !== undefined }
}

/** Parses an optional time of a request; one beyond the years 1 to 9999 in UTC as the first or last of them. */
export function toDate(time: string | undefined): Date | undefined {
  if (time === undefined) return undefined
  return new Date(Math.min(Math.max(Date.parse(time), MIN_TIME_MS), MAX_TIME_MS))
}

function seal(list: string, text: string): string {
  const digest = hash('sha256', `${list} ${text}`, 'base64url').slice(0, DIGEST_LENGTH)
  return Buffer.from(digest + text).toString('base64url')
}
