import { PassThrough } from 'node:stream'
import { describe, expect, test } from '@jest/globals'
import stringWidth from 'string-width'
import type { CliError } from './cli-error.ts'
import {
  CLEAR_LINE,
  type Column,
  createTerminal,
  guardTerminal,
  paint,
  renderTable,
  showDuration,
  type Terminal,
  timeColumn,
  withoutControls,
} from './terminal.ts'

const terminal = (changes: Partial<Terminal> = {}): Terminal => ({
  write: () => {},
  writeError: () => {},
  isColoured: false,
  columns: undefined,
  ...changes,
})
/** A guarded terminal, and what reaches it. */
function capture(changes: Partial<Terminal> = {}): Terminal & { written: string[] } {
  const written: string[] = []
  const write = (text: string) => void written.push(text)
  const ask = async (question: string) => {
    write(question)
    return ''
  }
  return { ...guardTerminal(terminal({ write, writeError: write, ask, ...changes })), written }
}
const columns = [
  { title: 'NAME', value: (row: { name: string; why: string }) => row.name },
  { title: 'WHY', value: (row: { name: string; why: string }) => row.why, colour: () => 'red' as const },
]

test.each([
  ['an answer', 'acme\r', 'acme'],
  ['the end of the input', '\u0004', ''],
  ['Ctrl-C', '\u0003', 130],
])('a question ends with %s', async (_what, typed, expected) => {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  for (const each of Object.values(streams)) Object.assign(each, { isTTY: true, hasColors: () => false })
  const { ask } = createTerminal(streams as never)
  const answer = ask!('Name: ').catch((error: CliError) => error.exitStatus)
  streams.stdin.write(typed)
  expect(await answer).toBe(expected)
})

describe('guardTerminal', () => {
  /** A title, a cleared screen, C1 controls, a colour, and marks that reverse what is read. */
  const EVIL = 'a\u001b]0;PWNED\u0007\u001b[2J\u009b2J\u001b[31m\u007f\r\u202egnp.exe\u2066\u200f'

  test.each([true, false])(
    'writes what controls a terminal as in JSON, also where it has colours: %s',
    async (isColoured) => {
      const guarded = capture({ isColoured })
      guarded.write(`${EVIL}\n\t`)
      guarded.writeError(EVIL)
      await guarded.ask?.(EVIL)
      const escaped = 'a\\u001b]0;PWNED\\u0007\\u001b[2J\\u009b2J\\u001b[31m\\u007f\\u000d\\u202egnp.exe\\u2066\\u200f'
      expect(guarded.written).toEqual([`${escaped}\n\t`, escaped, escaped])
    },
  )

  test('keeps the values of JSON', () => {
    const guarded = capture()
    guarded.write(`${JSON.stringify({ name: EVIL }, null, 2)}\n`)
    expect(JSON.parse(guarded.written.join(''))).toEqual({ name: EVIL })
    expect(guarded.written.join('').replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  test('keeps colours and a cleared line of the program, and no others beside them', () => {
    const guarded = capture({ isColoured: true })
    guarded.write(`${CLEAR_LINE}${paint(guarded, 'red', 'Error: \u001b[32mfine')}`)
    expect(guarded.written.join('')).toBe('\u001b[2K\u001b[G\u001b[31mError: \\u001b[32mfine\u001b[39m')
  })
})

test('a terminal whose errors go to a file writes them without colours', () => {
  const written: string[] = []
  const stream = { write: (text: string) => void written.push(text), hasColors: () => true }
  const created = createTerminal({ stdin: {}, stdout: { ...stream, isTTY: true }, stderr: stream } as never)
  for (const write of [created.write, created.writeError]) write(paint(created, 'red', 'Error:'))
  expect(written).toEqual(['\u001b[31mError:\u001b[39m', 'Error:'])
})

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

  test('uses colours only if the terminal has them', () => {
    const rows = [{ name: 'a', why: 'b' }]
    expect(renderTable(terminal(), columns, rows, '')).not.toContain('\u001b')
    const { written, ...coloured } = capture({ isColoured: true })
    coloured.write(renderTable(coloured, columns, rows, ''))
    expect(written.join('')).toContain('\u001b[31mb\u001b[39m')
  })

  test('wraps the last column at the width of a terminal, and never in a file', () => {
    const rows = [{ name: 'a', why: 'word '.repeat(100) }]
    const linesAt = (width?: number) => renderTable(terminal({ columns: width }), columns, rows, '').split('\n')
    expect(linesAt(40).map((line) => line.length <= 40)).toEqual(Array(5).fill(true))
    expect(linesAt()).toHaveLength(3)
  })
})

describe('renderTable on a terminal of 80 columns', () => {
  const run = {
    at: '2026-01-31T09:00:00Z',
    id: '01a1fd4e-f109-7ab0-9050-44d23f55f995',
    name: 'Forward the orders of the shop',
    error: 'model_refused: the answer was not one that the service can use',
  }
  type Run = typeof run
  const runColumns: readonly Column<Run>[] = [
    timeColumn('ACCEPTED (UTC)', ({ at }) => at),
    { title: 'RUN', value: ({ id }) => id, cut: 'id' },
    { title: 'WORKFLOW', value: ({ name }) => name, cut: 'name' },
    { title: 'ERROR', value: ({ error }) => error },
  ]
  const linesAt = (width: number | undefined, rows: Run[]) =>
    renderTable(terminal({ columns: width }), runColumns, rows, '')
      .trimEnd()
      .split('\n')

  test('shortens times, cuts ids and names after a word, and wraps the last column between words', () => {
    expect(linesAt(80, [run])).toEqual([
      'ACCEPTED     RUN             WORKFLOW                  ERROR',
      '01-31 09:00  01a1fd4e-f109…  Forward the orders of…    model_refused: the answer',
      '                                                       was not one that the',
      '                                                       service can use',
    ])
  })

  test('breaks no word at any width, and is as wide as the terminal at most', () => {
    const words = new Set([...run.name.split(' '), ...run.error.split(' ')])
    for (let width = 72; width <= 200; width += 1) {
      const [, ...lines] = linesAt(width, [run, { ...run, name: '注文を転送するワークフロー' }])
      expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(width)
      const shown = lines.flatMap((line) => line.match(/[A-Za-z_]+:?…?/g) ?? []).filter((word) => /[g-z]/.test(word))
      expect(shown.filter((word) => !words.has(word.replace('…', '')))).toEqual([])
    }
  })

  test('shows everything in full on a wide terminal, and one line a row in a pipe', () => {
    const full = `2026-01-31 09:00:00  ${run.id}  ${run.name}  ${run.error}`
    expect(linesAt(200, [run])[1]).toBe(full)
    expect(linesAt(undefined, [run])[1]).toBe(full)
  })
})

test.each([
  [null, '–'],
  [0, '0 ms'],
  [999.4, '999 ms'],
  [1_500, '1.5 s'],
  [59_960, '1 min 0 s'],
  [65_000, '1 min 5 s'],
  [119_600, '2 min 0 s'],
])('showDuration shows %p as %s', (ms, text) => {
  expect(showDuration(ms)).toBe(text)
})

test('a text from outside has no control characters, C1 ones included, and no overrides of its direction', () => {
  expect(withoutControls('a\u009b2Jb\u001b[2Jc\nd\u202ee\u2066f')).toBe('a 2Jb [2Jc d e f')
})
