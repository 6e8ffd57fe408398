import type { TimePosition } from '@workflow-service/database'
import {
  type CursorFormat,
  type PageQuery,
  type PageRead,
  pageResponse,
  UUID_OF_CURSOR,
} from '@workflow-service/service-kit'

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

/**
 * Returns a page of the rows that `read` resolves to. It is asked for one more than the limit, to know whether others
 * follow.
 */
export async function pageOfRows<Row, Position>(
  query: PageQuery,
  format: CursorFormat<Position>,
  positionOf: (row: Row) => Position,
  read: (page: PageRead<Position>) => Promise<readonly Row[]>,
) {
  return await pageResponse(query, format, async ({ limit, after }) => {
    const rows = await read({ limit: limit + 1, after })
    const last = rows.length > limit ? rows[limit - 1] : undefined
    return { rows: rows.slice(0, limit), next: last && positionOf(last) }
  })
}

/** Returns the page of the entries that `read` finds for the `ids` of a query; undefined without `ids`. */
export async function pageOfIds<Row>(
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
