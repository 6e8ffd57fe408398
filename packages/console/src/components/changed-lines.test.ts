import { expect, test } from '@jest/globals'
import { changedLines } from './changed-lines.ts'

const linesOf = (count: number, word: string) => `${word}\n`.repeat(count)

test('equal texts have no changed lines, also when only one ends its last line', () => {
  expect(changedLines('a\nb', 'a\nb\n')).toEqual([])
})

test('where texts differ more than is compared, the number of lines that are left out is shown', () => {
  const added = changedLines('', linesOf(5_000, 'new'))
  expect([added.length, added[0], added.at(-1)]).toEqual([1_001, '+new', ' … 4,000 more lines'])
  const replaced = changedLines(linesOf(1_500, 'old'), linesOf(1_500, 'new'))
  expect([replaced.length, replaced[1_000], replaced.at(-1)]).toEqual([2_002, ' … 500 more lines', ' … 500 more lines'])
})
