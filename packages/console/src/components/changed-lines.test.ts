import { expect, test } from '@jest/globals'
import { changedLines } from './changed-lines.ts'

const numbered = (count: number, text = 'line') => Array.from({ length: count }, (_, index) => `${text} ${index}`)
const kinds = (old: string, next: string) => changedLines(old, next).map(({ kind, text }) => `${kind}: ${text}`)

test('two texts are compared line by line, and unchanged lines far from a change are left out', () => {
  const old = numbered(20)
  expect(kinds(old.join('\n'), old.with(10, 'other').toSpliced(15, 1).join('\n'))).toEqual([
    'left_out: 7 lines',
    'same: line 7\nline 8\nline 9',
    'old: line 10',
    'new: other',
    'same: line 11\nline 12\nline 13\nline 14',
    'old: line 15',
    'same: line 16\nline 17\nline 18\nline 19',
  ])
  expect(kinds('', 'one\n')).toEqual(['new: one'])
  // The end of the last line is no change.
  expect(kinds('one', 'one\n')).toEqual(['same: one'])
})

test('texts of 100,000 characters without a common line are shown one after the other, each cut off', () => {
  const [old, next] = [numbered(9_000, 'a'), numbered(9_000, 'b')]
  const [first, left, second, ...others] = changedLines(old.join('\n'), next.join('\n'))
  expect([first?.kind, first?.text.split('\n').length, left?.text, second?.kind]).toEqual([
    'old',
    500,
    '8,500 lines',
    'new',
  ])
  expect(others).toHaveLength(1)
})
