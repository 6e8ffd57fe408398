import { describe, expect, test } from '@jest/globals'
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
})
