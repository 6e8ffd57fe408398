import { createHash } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { decodeListCursor, encodeListCursor } from './list-cursor.ts'

const scope = { organizationId: '01890a5d-ac96-7ab2-80e2-4536629c90de', search: 'Straße' }
const position = { createdAt: new Date('2026-01-31T09:00:00.123Z'), id: '01890a5d-ac96-774b-bcce-b302099a8057' }

describe('list cursors', () => {
  test.each([
    '2026-01-31T09:00:00.123Z',
    '0001-01-01T00:00:00.000Z',
    '1969-12-31T23:59:59.999Z',
    '9999-12-31T23:59:59.999Z',
  ])('decode to the position that they were made from, at %s', (time) => {
    const encoded = { ...position, createdAt: new Date(time) }
    expect(decodeListCursor(encodeListCursor(encoded, scope), scope)).toEqual(encoded)
  })

  test('have 44 characters that need no encoding in a query', () => {
    expect(encodeListCursor(position, scope)).toMatch(/^[\w-]{44}$/)
  })

  test.each([
    ['another organization', { ...scope, organizationId: '01890a5d-ac96-7ab2-80e2-4536629c90df' }],
    ['another search', { ...scope, search: 'STRASSE' }],
    ['no search', { ...scope, search: '' }],
  ])('are not valid in the list of %s', (_what, other) => {
    expect(decodeListCursor(encodeListCursor(position, scope), other)).toBeUndefined()
  })

  test.each(['-000001-01-01T00:00:00Z', '0000-12-31T23:59:59.999Z', '+010000-01-01T00:00:00Z'])(
    'are not valid with the time %s, which PostgreSQL does not read',
    (time) => {
      const cursor = encodeListCursor({ ...position, createdAt: new Date(time) }, scope)
      expect(decodeListCursor(cursor, scope)).toBeUndefined()
    },
  )

  test('decode to a time that PostgreSQL reads, or not at all, for any bytes', () => {
    const time = fc.oneof(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.bigInt({ min: -(10n ** 14n), max: 10n ** 15n }),
    )
    fc.assert(
      fc.property(time, fc.uint8Array({ minLength: 16, maxLength: 16 }), (timeMs, id) => {
        const decoded = decodeListCursor(forgeCursor(timeMs, id), scope)
        if (!decoded) return
        expect(decoded.createdAt.toISOString()).toMatch(/^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        expect(decoded.id.replaceAll('-', '')).toBe(Buffer.from(id).toString('hex'))
      }),
      { seed: 1, numRuns: 300 },
    )
    const valid = encodeListCursor(position, scope)
    // Base64 decoders skip characters outside their alphabet, and have two alphabets.
    const withCharacter = fc
      .tuple(
        fc.nat(valid.length),
        fc.nat(1),
        fc.oneof(
          fc.base64String({ minLength: 4, maxLength: 4 }).map((text) => text.slice(0, 1)),
          fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
        ),
      )
      .map(([index, replaced, more]) => valid.slice(0, index) + more + valid.slice(index + replaced))
      .filter((text) => text !== valid)
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 60 }), withCharacter), (text) => {
        expect(decodeListCursor(text, scope)).toBeUndefined()
      }),
      { seed: 2, numRuns: 300 },
    )
  })
})

/** Creates a cursor with a correct digest from any bytes, as a caller can who knows the encoding. */
function forgeCursor(timeMs: bigint, id: Uint8Array): string {
  const bytes = Buffer.alloc(33)
  bytes.writeUInt8(1, 0)
  bytes.writeBigInt64BE(timeMs, 1)
  bytes.set(id, 9)
  const digest = createHash('sha256').update(bytes.subarray(0, 25)).update(scope.organizationId).update(scope.search)
  bytes.set(digest.digest().subarray(0, 8), 25)
  return bytes.toString('base64url')
}
