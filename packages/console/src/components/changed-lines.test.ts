import { expect, test } from '@jest/globals'
import { changedLines } from './changed-lines.ts'

const linesOf = (count: number, word: string) => `${word}\n`.repeat(count)

test.each<[difference: string, old: unknown, next: unknown, lines: string[]]>([
  ['equal texts', 'a', 'a', []],
  ['a number and its text', 99.5, '99.5', ['-99.5', '+"99.5"']],
  ['null and a missing value', null, undefined, ['-null']],
  ['a text that ends its last line', 'a\nb', 'a\nb\n', ['-"a\\nb"', '+"a\\nb\\n"']],
  ['an empty text and the text (empty)', '', '(empty)', ['-""', '+"(empty)"']],
])('values that read the same are compared as JSON: %s', (_difference, old, next, lines) => {
  expect(changedLines(old, next)).toEqual(lines)
})

test('where texts differ more than is compared, the number of lines that are left out is shown', () => {
  const added = changedLines(null, linesOf(5_000, 'new'))
  expect([added.length, added[0], added.at(-1)]).toEqual([1_001, '+new', ' … 4,000 more lines'])
  const replaced = changedLines(linesOf(1_500, 'old'), linesOf(1_500, 'new'))
  expect([replaced.length, replaced[1_000], replaced.at(-1)]).toEqual([2_002, ' … 500 more lines', ' … 500 more lines'])
})
