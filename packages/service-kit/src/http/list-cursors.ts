import { hash } from 'node:crypto'

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
/** The years 1 to 9999. `Date.toISOString` writes others with a sign, which PostgreSQL does not read. */
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

function seal(list: string, text: string): string {
  const digest = hash('sha256', `${list} ${text}`, 'base64url').slice(0, DIGEST_LENGTH)
  return Buffer.from(digest + text).toString('base64url')
}
