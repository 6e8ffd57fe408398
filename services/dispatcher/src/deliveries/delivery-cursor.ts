import type { TimePosition } from '@workflow-service/database'

// Fifteen digits end in the year 33658, which Date and PostgreSQL can both represent.
const CURSOR = /^(\d{1,15})\.([0-9a-f]{32})$/

/** Encodes the position. The cursor's encoding is opaque and may change. */
export function toDeliveryCursor({ createdAt, id }: TimePosition): string {
  return Buffer.from(`${createdAt.getTime()}.${id.replaceAll('-', '')}`, 'latin1').toString('base64url')
}

/** Decodes the position, or returns undefined if the text is not a cursor. */
export function readDeliveryCursor(cursor: string): TimePosition | undefined {
  const [, time, id] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []
  if (time === undefined || id === undefined) return undefined
  return { createdAt: new Date(Number(time)), id: id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') }
}
