import { LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import type { ReadPage, TimePosition } from '@workflow-service/database'
import {
  type CursorFormat,
  decodeCursor,
  encodeCursor,
  invalidFields,
  UUID_OF_CURSOR,
} from '@workflow-service/service-kit'

/** The query parameters of a list. An empty cursor is that of the first page. */
interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
}

/** Runs of a session, by number. */
export const BY_NUMBER: CursorFormat<{ readonly number: number }> = {
  list: 'session',
  pattern: /^(\d{1,15})$/,
  write: ({ number }) => String(number),
  read: (number) => ({ number: Number(number) }),
}
/** The audit log, by id. */
export const BY_ID = byText('audit', new RegExp(`^(${UUID_OF_CURSOR})$`))
/** Users, by email address. PostgreSQL has no NUL in texts. */
export const BY_EMAIL = byText('users', /^([^\0]+)$/)

function byText(list: string, pattern: RegExp): CursorFormat<string> {
  return { list, pattern, write: (text) => text, read: (text = '') => text }
}

interface PageRead<Position> {
  readonly limit: number
  readonly after: Position | undefined
}

/**
 * Answers with the page that `read` returns, and the cursor of the next one.
 * @throws ApiError 422 on `cursor`
 */
export async function answerPage<Row, Position>(
  query: PageQuery,
  format: CursorFormat<Position>,
  read: (page: PageRead<Position>) => Promise<ReadPage<Row, Position>>,
) {
  const { limit = LIST_DEFAULT_LIMIT, cursor } = query
  const after = cursor ? decodeCursor(format, cursor) : undefined
  if (cursor && after === undefined) {
    const message = 'is not the next_cursor of a page of this list; omit it for the first page'
    throw invalidFields([{ field: 'cursor', code: 'invalid_cursor', message }])
  }
  const { rows, next } = await read({ limit, after })
  const nextCursor = next === undefined ? null : encodeCursor(format, next)
  return { data: [...rows], pagination: { has_more: next !== undefined, next_cursor: nextCursor } }
}

/**
 * Answers with a page of the rows that `read` returns. It is asked for one more than the limit, to know whether others
 * follow.
 */
export async function answerRows<Row, Position>(
  query: PageQuery,
  format: CursorFormat<Position>,
  positionOf: (row: Row) => Position,
  read: (page: PageRead<Position>) => Promise<readonly Row[]>,
) {
  return await answerPage(query, format, async ({ limit, after }) => {
    const rows = await read({ limit: limit + 1, after })
    const last = rows.length > limit ? rows[limit - 1] : undefined
    return { rows: rows.slice(0, limit), next: last && positionOf(last) }
  })
}

/** Answers with the entries that `read` finds for the `ids` of a query; undefined without `ids`. */
export async function answerIds<Row>(
  { ids }: { readonly ids?: string },
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
) {
  if (ids === undefined) return undefined
  return { data: [...(await read(ids.split(',')))], pagination: { has_more: false, next_cursor: null } }
}

/** The position in time of an entry of the contract. */
export function timeOf(entry: { readonly created_at: string; readonly id: string }): TimePosition {
  return { createdAt: new Date(entry.created_at), id: entry.id }
}

/** The years of times in JSON. PostgreSQL has no year 0, and `Date.toISOString` writes later years with a sign. */
const MIN_TIME_MS = Date.parse('0001-01-01T00:00:00.000Z')
const MAX_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** Parses an optional time of a request; one beyond the years 1 to 9999 in UTC as the first or last of them. */
export function toDate(time: string | undefined): Date | undefined {
  if (time === undefined) return undefined
  return new Date(Math.min(Math.max(Date.parse(time), MIN_TIME_MS), MAX_TIME_MS))
}
