import { randomUUIDv7 } from 'node:crypto'

/** A new request id: a UUIDv7, so that ids sort by time in the logs. */
export function newRequestId(): string {
  return randomUUIDv7()
}
