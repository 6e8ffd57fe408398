import { createHash, randomUUIDv7 } from 'node:crypto'

/** Below every id: where a list or a sweep begins, and what stands for no thing. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

let lastTime = ''
let counter = 0

/**
 * Creates an id: UUIDv7 (RFC 9562), so that indexes grow at their end. The ids of one process sort in the order in
 * which they were created, up to 4,096 within a millisecond, or until a clock that stepped back is there again: the 12
 * bits after the version are a counter (section 6.2, method 1). Lists sort what has the same time by id.
 */
export function newId(): string {
  const id = randomUUIDv7()
  const time = id.slice(0, 13)
  if (time > lastTime) {
    lastTime = time
    counter = 0
  } else {
    counter = Math.min(counter + 1, 0xfff)
  }
  return `${lastTime}-7${counter.toString(16).padStart(3, '0')}${id.slice(18)}`
}

/**
 * Creates the id under which a run sends a payload: as `newId`, but of version 8 (RFC 9562, 5.8), which nothing else
 * has. The journal shows it before the payload is sent, and no other delivery can take it: see `isDeliveryIdOfRun`.
 */
export function newDeliveryId(): string {
  const id = newId()
  return `${id.slice(0, 14)}8${id.slice(15)}`
}

/** Whether the id is one that only runs use. */
export function isDeliveryIdOfRun(id: string): boolean {
  return id.charAt(14) === '8'
}

/** The namespace of derived ids. Changing it would give everything that a manifest created a new id. */
const NAMESPACE = '6f1c2b52-6c0e-5d39-9a41-7f0f3c1d8e60'

/** An id derived from its parts: the same parts give the same id on every machine. */
export function deriveId(...parts: readonly (string | number)[]): string {
  return nameBasedId(NAMESPACE, JSON.stringify(parts))
}

/** UUIDv5 (RFC 9562, 5.5): SHA-1 of the namespace's bytes and the name. */
export function nameBasedId(namespace: string, name: string): string {
  const hash = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name, 'utf8')
  const bytes = hash.digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
