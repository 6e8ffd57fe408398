import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { readDeliveryCursor, toDeliveryCursor } from './delivery-cursor.ts'

const position = { createdAt: new Date('2026-01-31T09:00:00.123Z'), id: '01890a5d-ac96-774b-bcce-b302099a8057' }

describe('the cursor of the delivery log', () => {
  test('is decoded to the position that was encoded', () => {
    expect(readDeliveryCursor(toDeliveryCursor(position))).toEqual(position)
  })

  test.each([
    '',
    'x',
    'null',
    '🔑',
    toDeliveryCursor(position).slice(1),
    `${toDeliveryCursor(position)}AA`,
    'A'.repeat(512),
  ])('is undefined for %j', (text) => {
    expect(readDeliveryCursor(text)).toBeUndefined()
  })

  test('is undefined or a position that PostgreSQL can represent, for any text', () => {
    const encoded = fc.tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.string({ unit: 'binary-ascii' }))
    const valid = Buffer.from(toDeliveryCursor(position), 'base64url')
    const withByte = fc
      .tuple(fc.nat(valid.length), fc.nat(1), fc.nat(255))
      .map(([index, replaced, byte]) =>
        Buffer.concat([valid.subarray(0, index), Buffer.of(byte), valid.subarray(index + replaced)]),
      )
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.base64String(),
      encoded.map(([time, id]) => Buffer.from(`${time}.${id}`).toString('base64url')),
      fc.nat(25).map((digits) => Buffer.from(`${'9'.repeat(digits)}.${'f'.repeat(32)}`).toString('base64url')),
      withByte.map((bytes) => bytes.toString('base64url')),
    )
    let read = 0
    fc.assert(
      fc.property(text, (cursor) => {
        const found = readDeliveryCursor(cursor)
        if (!found) return
        read += 1
        const plain = Buffer.from(cursor, 'base64url').toString('latin1')
        expect(plain).toMatch(/^[0-9]{1,15}\.[0-9a-f]{32}$/)
        expect(found.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
        expect(`${found.createdAt.getTime()}.${found.id.replaceAll('-', '')}`).toBe(plain.replace(/^0+(?=\d)/, ''))
      }),
      { seed: 20261122, numRuns: 1_000 },
    )
    expect(read).toBeGreaterThan(20)
  })
})
