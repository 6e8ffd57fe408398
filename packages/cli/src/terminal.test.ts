import { describe, expect, test } from '@jest/globals'
import { renderTable, showDuration, type Terminal } from './terminal.ts'

const terminal = (changes: Partial<Terminal> = {}): Terminal => ({
  write: () => {},
  writeError: () => {},
  isColoured: false,
  columns: undefined,
  ...changes,
})
const columns = [
  { title: 'NAME', value: (row: { name: string; why: string }) => row.name },
  { title: 'WHY', value: (row: { name: string; why: string }) => row.why, colour: () => 'red' as const },
]

describe('renderTable', () => {
  test('aligns columns without borders and without trailing spaces', () => {
    const rows = [
      { name: 'a', why: 'short' },
      { name: 'longer', why: '' },
    ]
    expect(renderTable(terminal(), columns, rows, '')).toBe('NAME    WHY\na       short\nlonger\n')
  })

  test('aligns wide and combining characters by their width', () => {
    const rows = [
      { name: '注文', why: 'wide' },
      { name: 'abcd', why: 'as wide' },
      { name: 'e\u0301', why: 'narrow' },
    ]
    expect(renderTable(terminal(), columns, rows, '')).toBe(
      'NAME  WHY\n注文  wide\nabcd  as wide\ne\u0301     narrow\n',
    )
  })

  test('shows thousands of rows under one heading', () => {
    const rows = Array.from({ length: 3_000 }, (_, index) => ({ name: `row ${index}`, why: '' }))
    const lines = renderTable(terminal(), columns, rows, '').trimEnd().split('\n')
    expect(lines).toHaveLength(3_001)
    expect(lines.filter((line) => line.startsWith('NAME'))).toHaveLength(1)
    expect(lines.at(-1)).toBe('row 2999')
  })

  test('shows the given text when there are no rows', () => {
    expect(renderTable(terminal(), columns, [], 'Nothing yet.')).toBe('Nothing yet.\n')
  })

  test('uses colours only if the terminal has them', () => {
    const rows = [{ name: 'a', why: 'b' }]
    expect(renderTable(terminal(), columns, rows, '')).not.toContain('\u001b')
    expect(renderTable(terminal({ isColoured: true }), columns, rows, '')).toContain('\u001b[31mb\u001b[39m')
  })

  test('replaces control characters, because names and answers come from outside', () => {
    const rows = [{ name: 'a\u001b[2J\nb', why: '\u009b31m\u0007' }]
    expect(renderTable(terminal(), columns, rows, '')).toBe('NAME     WHY\na [2J b   31m\n')
  })

  test('wraps the last column at the width of a terminal, and never in a file', () => {
    const rows = [{ name: 'a', why: 'one two three four five six seven eight nine ten' }]
    const narrow = renderTable(terminal({ columns: 40 }), columns, rows, '')
    expect(narrow.split('\n').length).toBeGreaterThan(3)
    expect(Math.max(...narrow.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40)
    expect(renderTable(terminal(), columns, rows, '').split('\n')).toHaveLength(3)
  })
})

describe('showDuration', () => {
  test.each([
    [null, '–'],
    [0, '0 ms'],
    [999.4, '999 ms'],
    [1_500, '1.5 s'],
    [65_000, '1 min 5 s'],
  ])('shows %p as %s', (ms, text) => {
    expect(showDuration(ms)).toBe(text)
  })
})
