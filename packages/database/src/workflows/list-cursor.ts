import { createHash } from 'node:crypto'
import type { paging } from '../connection/index.ts'

/** The list that a cursor was made in. */
export interface ListScope {
  readonly organizationId: string
  /** As the caller sent it; empty when it sent none. */
  readonly search: string
}

const VERSION = 1
const BYTES = 1 + 8 + 16 + 8
/** The years 1 to 9999. `Date.toISOString` writes others with a sign, which PostgreSQL does not read. */
const MIN_TIME_MS = Date.parse('0001-01-01T00:00:00.000Z')
const MAX_TIME_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Encodes a position in a list as an opaque cursor (contract README, "Pagination and search"). A digest binds it to its
 * organization and search, so that callers cannot mix lists up by mistake. It is not secret: a cursor only leads
 * through the caller's own workflows.
 */
export function encodeListCursor(position: paging.TimePosition, scope: ListScope): string {
  const bytes = Buffer.alloc(BYTES)
  bytes.writeUInt8(VERSION, 0)
  bytes.writeBigInt64BE(BigInt(position.createdAt.getTime()), 1)
  bytes.write(position.id.replaceAll('-', ''), 9, 'hex')
  digest(bytes, scope).copy(bytes, 25, 0, 8)
  return bytes.toString('base64url')
}

/** Decodes a cursor; undefined for any text that is not a cursor of this list. */
export function decodeListCursor(cursor: string, scope: ListScope): paging.TimePosition | undefined {
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length !== BYTES || bytes.toString('base64url') !== cursor || bytes.readUInt8(0) !== VERSION)
    return undefined
  if (!digest(bytes, scope).subarray(0, 8).equals(bytes.subarray(25))) return undefined
  // The digest is no secret: a caller can make a cursor with any time.
  const timeMs = Number(bytes.readBigInt64BE(1))
  if (timeMs < MIN_TIME_MS || timeMs > MAX_TIME_MS) return undefined
  const id = bytes.toString('hex', 9, 25).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { createdAt: new Date(timeMs), id }
}

function digest(bytes: Buffer, { organizationId, search }: ListScope): Buffer {
  return createHash('sha256').update(bytes.subarray(0, 25)).update(organizationId).update(search, 'utf8').digest()
}
