import { createHash } from 'node:crypto'
import type { WorkflowPosition } from '@workflow-service/database'

/** What a cursor is good for: the list that it was made in. */
export interface ListedOf {
  readonly organizationId: string
  /** As the caller sent it; empty when it sent none. */
  readonly search: string
}

const VERSION = 1
const BYTES = 1 + 8 + 16 + 8

/**
 * Opaque text for a place in a list. It is bound to the organization and the search by a digest, which keeps callers from
 * mixing lists up; it is no secret, since a cursor only ever leads through the caller's own workflows.
 */
export function toListCursor(position: WorkflowPosition, listed: ListedOf): string {
  const bytes = Buffer.alloc(BYTES)
  bytes.writeUInt8(VERSION, 0)
  bytes.writeBigInt64BE(BigInt(position.createdAt.getTime()), 1)
  bytes.write(position.id.replaceAll('-', ''), 9, 'hex')
  digest(bytes, listed).copy(bytes, 25, 0, 8)
  return bytes.toString('base64url')
}

/** The place, or undefined for any text that is no cursor of this list. */
export function readListCursor(cursor: string, listed: ListedOf): WorkflowPosition | undefined {
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length !== BYTES || bytes.toString('base64url') !== cursor || bytes.readUInt8(0) !== VERSION)
    return undefined
  if (!digest(bytes, listed).subarray(0, 8).equals(bytes.subarray(25))) return undefined
  const createdAt = new Date(Number(bytes.readBigInt64BE(1)))
  if (Number.isNaN(createdAt.getTime())) return undefined
  const id = bytes.toString('hex', 9, 25).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { createdAt, id }
}

function digest(bytes: Buffer, { organizationId, search }: ListedOf): Buffer {
  return createHash('sha256').update(bytes.subarray(0, 25)).update(organizationId).update(search, 'utf8').digest()
}
