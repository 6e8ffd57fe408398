import { relative } from 'node:path'
import { styleText } from 'node:util'
import Table from 'cli-table3'
import stringWidth from 'string-width'

/** Where `wf` writes, and what it may do there. */
export interface Terminal {
  readonly write: (text: string) => void
  readonly writeError: (text: string) => void
  /** Only on a terminal, and never where NO_COLOR is set. */
  readonly isColoured: boolean
  /** Undefined where lines have no end, as in a file. */
  readonly columns: number | undefined
}

export type Format = Parameters<typeof styleText>[0]

/** The process' own terminal. */
export function createTerminal(): Terminal {
  const { stdout, stderr } = process
  return {
    write: (text) => stdout.write(text),
    writeError: (text) => stderr.write(text),
    isColoured: stdout.isTTY && stdout.hasColors(),
    columns: stdout.isTTY ? stdout.columns : undefined,
  }
}

/** The text in a colour, where there are colours. */
export function paint(terminal: Pick<Terminal, 'isColoured'>, format: Format, text: string): string {
  return terminal.isColoured ? styleText(format, text, { validateStream: false }) : text
}

/** A column of a table. Only the last one may be long: it is wrapped at the terminal's edge. */
export interface Column<Row> {
  readonly title: string
  /** Plain text; what a terminal would obey is taken out. */
  readonly value: (row: Row) => string
  readonly colour?: (row: Row) => Format | undefined
}

const GAP = 2
const LAST_COLUMN_MIN_WIDTH = 24

/** Rows as a table without lines; what to say instead when there are none. */
export function renderTable<Row>(
  terminal: Terminal,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  whenEmpty: string,
): string {
  if (rows.length === 0) return `${whenEmpty}\n`
  const texts = rows.map((row) => columns.map(({ value }) => withoutControls(value(row))))
  const colWidths = widthsOf(terminal, columns, texts)
  const head = columns.map(({ title }) => paint(terminal, 'dim', title))
  const painted = rows.map((row, place) =>
    columns.map(({ colour }, index) => {
      const text = texts[place]?.[index] ?? ''
      const format = colour?.(row)
      return format === undefined ? text : paint(terminal, format, text)
    }),
  )
  const parts = Array.from({ length: Math.ceil(rows.length / ROWS_AT_ONCE) }, (_, part) => {
    const table = new Table({ ...STYLE, colWidths, ...(part === 0 ? { head } : {}) })
    table.push(...painted.slice(part * ROWS_AT_ONCE, (part + 1) * ROWS_AT_ONCE))
    return table.toString().split('\n')
  })
  return parts
    .flat()
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** cli-table3 takes time with the square of the rows. */
const ROWS_AT_ONCE = 100

const LINES = ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right', 'left']
const MORE_LINES = ['left-mid', 'mid', 'mid-mid', 'right', 'right-mid']
const STYLE = {
  chars: { ...Object.fromEntries([...LINES, ...MORE_LINES].map((name) => [name, ''])), middle: ' '.repeat(GAP) },
  style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  wordWrap: true,
}

/** Every column as wide as its widest text, but the last one not beyond the edge of the terminal. */
function widthsOf(
  { columns: total }: Terminal,
  columns: readonly { title: string }[],
  texts: readonly string[][],
): number[] {
  const widths = columns.map(({ title }, index) =>
    texts.reduce((widest, row) => Math.max(widest, stringWidth(row[index] ?? '')), title.length),
  )
  if (total === undefined) return widths
  const others = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP, 0)
  const rest = Math.max(LAST_COLUMN_MIN_WIDTH, total - others - 1)
  return widths.map((width, index) => (index === widths.length - 1 ? Math.min(width, rest) : width))
}

/** The text on one line, without what a terminal would obey: names and answers are text from outside. */
export function withoutControls(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ')
}

/** A time for people: UTC, to the second. */
export function showTime(time: Date | string | null): string {
  if (time === null) return '–'
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ')
}

/** A length of time for people. */
export function showDuration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
}

/** The path as it reads from where the user is, when that is shorter. */
export function toShownPath(path: string, from = process.cwd()): string {
  const shown = relative(from, path)
  return shown !== '' && shown.length < path.length ? shown : path
}
