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
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.base64String(),
      encoded.map(([time, id]) => Buffer.from(`${time}.${id}`).toString('base64url')),
      fc.nat().map((time) => Buffer.from(`${time}.${'a'.repeat(32)}`).toString('base64url')),
      fc.nat(25).map((digits) => Buffer.from(`${'9'.repeat(digits)}.${'f'.repeat(32)}`).toString('base64url')),
    )
    fc.assert(
      fc.property(text, (cursor) => {
        const read = readDeliveryCursor(cursor)
        const isStorable =
          (read?.createdAt.getTime() ?? 0) < 1e15 && /^([0-9a-f-]{36}|undefined)$/.test(String(read?.id))
        expect(isStorable).toBe(true)
      }),
      { seed: 20261122, numRuns: 5_000 },
    )
  })
})
