import { expect, test } from '@jest/globals'
import { beginningOf, firstCharacter, fold, quote } from './text.ts'

const FAMILY = '👩‍👩‍👧'

test('the beginning of a text ends before a character that does not fit', () => {
  expect(beginningOf(`ab${FAMILY}`, 6)).toBe('ab')
  expect(beginningOf(`ab${FAMILY}c`, 7)).toBe(`ab${FAMILY}`)
  expect(beginningOf('cafe\u0301', 4)).toBe('caf')
  expect(beginningOf('cafe\u0301', 5)).toBe('cafe\u0301')
  expect(quote(`${'x'.repeat(199)}😀`, 199)).toBe(`“${'x'.repeat(199)}…”`)
  expect([FAMILY, 'e\u0301x', ''].map(firstCharacter)).toEqual([FAMILY, 'e\u0301', ''])
})

test.each([
  ['Straße', 'STRASSE'],
  ['e\u0301té', 'ÉTÉ'],
  ['Ὀδυσσεύς', 'ὈΔΥΣΣΕΎΣ'],
])('%s and %s are the same name', (one, other) => {
  expect(fold(one)).toBe(fold(other))
})
