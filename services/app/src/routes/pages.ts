import { LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import { invalidFields } from '@workflow-service/service-kit'

/** The query parameters of a list. */
export interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
}

/** Reads a page: asks for one row more than the limit, to know whether there are more. */
export async function readPage<Row, Item>(
  { limit = LIST_DEFAULT_LIMIT, cursor }: PageQuery,
  options: {
    read: (limit: number, after: readonly string[] | undefined) => Promise<readonly Row[]>
    /** The values that identify the row's position in the list; `columns` of them. */
    keyOf: (row: Row) => readonly string[]
    isKey: (key: readonly string[]) => boolean
    toItem: (row: Row) => Item
  },
): Promise<{ data: Item[]; pagination: { next_cursor: string | null; has_more: boolean } }> {
  const rows = await options.read(limit + 1, !cursor ? undefined : decodeCursor(cursor, options.isKey))
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const hasMore = rows.length > limit
  return {
    data: page.map(options.toItem),
    pagination: { next_cursor: hasMore && last ? encodeCursor(options.keyOf(last)) : null, has_more: hasMore },
  }
}

function encodeCursor(key: readonly string[]): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url')
}

/** @throws ApiError 422 on `cursor`. */
function decodeCursor(cursor: string, isKey: (key: readonly string[]) => boolean): readonly string[] {
  try {
    const key = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown
    if (Array.isArray(key) && key.every((part) => typeof part === 'string') && isKey(key)) return key
  } catch {
    // Not JSON: not a cursor.
  }
  throw invalidFields([{ field: 'cursor', code: 'invalid_cursor', message: 'is not a cursor of this list' }])
}
