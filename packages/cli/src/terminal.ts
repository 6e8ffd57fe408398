import { relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { styleText } from 'node:util'
import Table from 'cli-table3'
import stringWidth from 'string-width'

/** The output of a command line program. */
export interface Terminal {
  readonly write: (text: string) => void
  readonly writeError: (text: string) => void
  /** Whether to use colours: only on a terminal, and not if NO_COLOR is set. */
  readonly isColoured: boolean
  /** Width of the terminal; undefined when the output is a file or a pipe. */
  readonly columns: number | undefined
  /** Asks a question and returns the answer. Absent unless a person can answer: standard input and standard error are a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
}

export type Format = Parameters<typeof styleText>[0]

/** Creates the terminal of this process. */
export function createTerminal(): Terminal {
  const { stdin, stdout, stderr } = process
  return {
    write: (text) => stdout.write(text),
    writeError: (text) => stderr.write(text),
    isColoured: stdout.isTTY && stdout.hasColors(),
    columns: stdout.isTTY ? stdout.columns : undefined,
    ask: stdin.isTTY && stderr.isTTY ? async (question) => await askOn(stdin, stderr, question) : undefined,
  }
}

/** Ends of input, such as Ctrl-D, are an empty answer. */
async function askOn(input: NodeJS.ReadableStream, output: NodeJS.WritableStream, question: string): Promise<string> {
  const lines = createInterface({ input, output })
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  try {
    return await lines.question(question, { signal: ended.signal })
  } catch {
    return ''
  } finally {
    lines.close()
  }
}

/** Colours the text if the terminal has colours. */
export function paint(terminal: Pick<Terminal, 'isColoured'>, format: Format, text: string): string {
  return terminal.isColoured ? styleText(format, text, { validateStream: false }) : text
}

/** A column of a table. Only the last one is wrapped, so the others should be short. */
export interface Column<Row> {
  readonly title: string
  /** Returns plain text. Control characters in it are replaced. */
  readonly value: (row: Row) => string
  readonly colour?: (row: Row) => Format | undefined
}

const GAP = 2
const LAST_COLUMN_MIN_WIDTH = 24

/** Formats rows as a table without borders, or returns `whenEmpty` if there are none. */
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
  const painted = rows.map((row, rowIndex) =>
    columns.map(({ colour }, index) => {
      const text = texts[rowIndex]?.[index] ?? ''
      const format = colour?.(row)
      return format === undefined ? text : paint(terminal, format, text)
    }),
  )
  const parts = Array.from({ length: Math.ceil(rows.length / ROWS_PER_TABLE) }, (_, part) => {
    const table = new Table({ ...STYLE, colWidths, ...(part === 0 ? { head } : {}) })
    table.push(...painted.slice(part * ROWS_PER_TABLE, (part + 1) * ROWS_PER_TABLE))
    return table.toString().split('\n')
  })
  return parts
    .flat()
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** Rows per table of cli-table3, whose time grows with the square of the rows. */
const ROWS_PER_TABLE = 100

const LINES = ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right', 'left']
const MORE_LINES = ['left-mid', 'mid', 'mid-mid', 'right', 'right-mid']
const STYLE = {
  chars: { ...Object.fromEntries([...LINES, ...MORE_LINES].map((name) => [name, ''])), middle: ' '.repeat(GAP) },
  style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  wordWrap: true,
}

/** Makes each column as wide as its widest text, and limits the last one to the width of the terminal. */
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

/** Replaces control characters by spaces: names and answers come from outside and could contain escape sequences. */
export function withoutControls(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ')
}

/** Formats a time in UTC, to the second. */
export function showTime(time: Date | string | null): string {
  if (time === null) return '–'
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ')
}

/** Formats a duration. */
export function showDuration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
}

/** Returns the path relative to the current folder, if that is shorter. */
export function toShownPath(path: string, from = process.cwd()): string {
  const shown = relative(from, path)
  return shown !== '' && shown.length < path.length ? shown : path
}
