import { randomUUIDv7 } from 'node:crypto'

/** A new id: UUIDv7 (RFC 9562), so that ids made later sort later and indexes grow at their end. */
export function newId(): string {
  return randomUUIDv7()
}
