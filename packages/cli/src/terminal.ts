import { randomBytes } from 'node:crypto'
import { relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { stripVTControlCharacters, styleText } from 'node:util'
import stringWidth from 'string-width'
import { InterruptedError } from './cli-error.ts'

/** The output of a command line program. */
export interface Terminal {
  readonly write: (text: string) => void
  readonly writeError: (text: string) => void
  /** Whether to use colours: only on a terminal, and not if NO_COLOR is set. */
  readonly isColoured: boolean
  /** Width of the terminal; undefined when the output is a file or a pipe. */
  readonly columns: number | undefined
  /**
   * Asks a question and returns the answer. Absent unless a person can answer: standard input and standard error are a
   * terminal.
   */
  readonly ask?: ((question: string, options?: { isSecret?: boolean }) => Promise<string>) | undefined
}

type Streams = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr'>

export type Format = Parameters<typeof styleText>[0]

/** Creates the terminal of this process. Nothing else may use its output: see `guardTerminal`. */
// oxlint-disable-next-line no-restricted-properties -- The one place that writes to them.
export function createTerminal({ stdin, stdout, stderr }: Streams = process): Terminal {
  return guardTerminal({
    write: (text) => stdout.write(text),
    writeError: (text) => stderr.write(stderr.isTTY ? text : stripVTControlCharacters(text)),
    isColoured: stdout.isTTY && stdout.hasColors(),
    columns: stdout.isTTY ? stdout.columns : undefined,
    ask:
      stdin.isTTY && stderr.isTTY
        ? async (question, options) => await askOn(stdin, stderr, question, options)
        : undefined,
  })
}

/**
 * Makes everything that is written to a terminal safe: names, answers and errors come from outside, and could clear the
 * screen, set its title, or reverse what is read. Line breaks, tabs, and what `paint` and CLEAR_LINE make stay; every
 * other control character and mark of the writing direction is written as in JSON (`\u001b`), so that JSON keeps its
 * values.
 */
export function guardTerminal({ write, writeError, ask, ...rest }: Terminal): Terminal {
  return {
    ...rest,
    write: (text) => write(toSafeText(text)),
    writeError: (text) => writeError(toSafeText(text)),
    ask: ask && (async (question, options) => await ask(toSafeText(question), options)),
  }
}

/**
 * Stands for ESC where the program itself writes it. Another one in each process, so that no text from outside can have
 * it.
 */
const ESC = `\uFFFE${randomBytes(6).toString('base64url')}`

/** Clears the line of the cursor, and moves the cursor to its beginning. */
export const CLEAR_LINE = `${ESC}[2K${ESC}[G`

const UNSAFE = /[\p{Cc}\p{Bidi_Control}]/gu
const UNSAFE_RUN = new RegExp(`${UNSAFE.source}+`, 'gu')

function toSafeText(text: string): string {
  const escaped = text.replaceAll(UNSAFE, (character) =>
    character === '\n' || character === '\t'
      ? character
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return escaped.replaceAll(ESC, '\u001b')
}

/** Ends of input, such as Ctrl-D, are an empty answer. @throws InterruptedError on Ctrl-C */
async function askOn(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  question: string,
  { isSecret = false }: { isSecret?: boolean } = {},
): Promise<string> {
  // On a terminal, readline writes what is typed: a secret goes to an output that shows nothing.
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() })
  if (isSecret) output.write(question)
  const lines = createInterface({ input, output: isSecret ? hidden : output, terminal: true })
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  let isInterrupted = false
  lines.once('SIGINT', () => {
    isInterrupted = true
    lines.close()
  })
  try {
    return await lines.question(question, { signal: ended.signal })
  } catch {
    if (isInterrupted) throw new InterruptedError('Interrupted.')
    return ''
  } finally {
    lines.close()
    if (isSecret) output.write('\n')
  }
}

/** Colours the text if the terminal has colours. Only a guarded terminal understands it. */
export function paint(terminal: Pick<Terminal, 'isColoured'>, format: Format | undefined, text: string): string {
  if (!terminal.isColoured || format === undefined || text === '') return text
  const [begin = '', end = ''] = styleText(format, '|', { validateStream: false }).replaceAll('\u001b', ESC).split('|')
  return `${begin}${text}${end}`
}

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  /** Returns plain text. Control characters in it are replaced. */
  readonly value: (row: Row) => string
  readonly colour?: (row: Row) => Format | undefined
  /** Used on a terminal on which the table does not fit. */
  readonly shortTitle?: string
  readonly shortValue?: (row: Row) => string
  /**
   * How a text that is too long for the terminal is cut. Default: it is not, and that of the last column is wrapped
   * between words.
   */
  readonly cut?: keyof typeof CUT_WIDTHS
}

/** A column of times in UTC. A narrow terminal shows them without year and seconds. */
export function timeColumn<Row>(title: string, timeOf: (row: Row) => Date | string | null): Column<Row> {
  return {
    title,
    value: (row) => showTime(timeOf(row)),
    shortTitle: title.replace(' (UTC)', ''),
    shortValue: (row) => showTime(timeOf(row)).slice(-14, -3) || '–',
  }
}

/** The least width of a name, and of the beginning of an id, which has its millisecond: `wf` accepts it as an id. */
const CUT_WIDTHS = { name: 8, id: 14 }
const LAST_COLUMN_MIN_WIDTH = 12
/** Lines of a row on a terminal; a pipe and `--json` have the whole text. */
const MAX_LINES = 3
const GAP = 2

/**
 * Formats rows as a table without borders, or returns `whenEmpty` if there are none. In a file or a pipe, each row is
 * one line with all values in full. On a terminal, the table fits its width: columns use their short form, then the
 * widest ones are cut, and the last one continues on up to two further lines.
 */
export function renderTable<Row>(
  terminal: Terminal,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  whenEmpty: string,
  { hasTitles = true } = {},
): string {
  if (rows.length === 0) return `${whenEmpty}\n`
  const full = layOut(columns, rows)
  const total = terminal.columns ?? Infinity
  const { texts, widths } = totalOf(full.widths) <= total ? full : layOut(columns.map(toShort), rows)
  const fitted = fitWidths(columns, widths, total)
  const formatRow = (cells: readonly string[], row: number): string => {
    const lines = cells.map((cell, index) =>
      index === cells.length - 1 ? wrapCell(cell, fitted[index]!) : [cutText(cell, fitted[index]!)],
    )
    const formats = columns.map(({ colour }) => (row === 0 ? 'dim' : colour?.(rows[row - 1]!)))
    return Array.from({ length: Math.max(...lines.map(({ length }) => length)) }, (_, line) => {
      const parts = lines.map((each, index) => {
        const text = each[line] ?? ''
        return `${paint(terminal, formats[index], text)}${' '.repeat(Math.max(0, fitted[index]! - stringWidth(text)))}`
      })
      return `${parts.join(' '.repeat(GAP)).trimEnd()}\n`
    }).join('')
  }
  return texts
    .map(formatRow)
    .slice(hasTitles ? 0 : 1)
    .join('')
}

function toShort<Row>({ title, value, shortTitle = title, shortValue = value }: Column<Row>): Column<Row> {
  return { title: shortTitle, value: shortValue }
}

/** The texts of the titles, then of the rows, and the width of the widest one of each column. */
function layOut<Row>(columns: readonly Column<Row>[], rows: readonly Row[]) {
  const titles = columns.map(({ title }) => title)
  const texts = [titles, ...rows.map((row) => columns.map(({ value }) => withoutControls(value(row))))]
  const widths = titles.map((_, index) => texts.reduce((widest, row) => Math.max(widest, stringWidth(row[index]!)), 0))
  return { texts, widths }
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1))
}

/** Narrows ids to the part that is needed, then the widest columns until the table fits, none below its minimum. */
function fitWidths<Row>(columns: readonly Column<Row>[], widths: readonly number[], total: number): number[] {
  const minimums = columns.map(({ title, cut }, index) => {
    const whole = index === columns.length - 1 ? LAST_COLUMN_MIN_WIDTH : Infinity
    return Math.min(widths[index]!, cut ? Math.max(CUT_WIDTHS[cut], title.length) : whole)
  })
  const fitted = [...widths]
  for (const [index, { cut }] of columns.entries()) {
    if (cut === 'id' && totalOf(fitted) > total) fitted[index] = minimums[index]!
  }
  for (let excess = totalOf(fitted) - total; excess > 0; excess -= 1) {
    const widest = fitted.reduce(
      (found, width, index) => (width > minimums[index]! && (found === -1 || width > fitted[found]!) ? index : found),
      -1,
    )
    if (widest === -1) break
    fitted[widest]! -= 1
  }
  return fitted
}

const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Cuts a text to a width, after a whole word unless the word is long. The cut is marked by "…". */
function cutText(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  const start = text.slice(0, startLength(text, width - 1))
  const lastSpace = start.lastIndexOf(' ')
  const isWhole = text.charAt(start.length) === ' '
  return `${(!isWhole && lastSpace >= start.length / 2 ? start.slice(0, lastSpace) : start).trimEnd()}…`
}

/** The length of the longest beginning of the text that has at most this width. */
function startLength(text: string, width: number): number {
  let used = 0
  for (const { segment, index } of GRAPHEMES.segment(text)) {
    used += stringWidth(segment)
    if (used > width) return index
  }
  return text.length
}

/** The lines of a cell of the last column: at most MAX_LINES, of which the last one is cut. */
function wrapCell(text: string, width: number): string[] {
  const lines = wrapText(text, width)
  const rest = lines.slice(MAX_LINES - 1)
  return rest.length <= 1 ? lines : [...lines.slice(0, MAX_LINES - 1), cutText(rest.join(' '), width)]
}

/**
 * Breaks a text into lines of at most this width between its words. A word that is longer than a line is broken too.
 */
export function wrapText(text: string, width: number): string[] {
  if (width === Infinity) return [text]
  const lines: string[] = []
  let rest = text
  for (;;) {
    const length = startLength(rest, width)
    if (length === rest.length) return [...lines, rest]
    const space = rest.lastIndexOf(' ', length)
    const end = space > 0 && rest.slice(0, space).trim() !== '' ? space : Math.max(1, length)
    lines.push(rest.slice(0, end))
    rest = rest.slice(end).trimStart()
  }
}

/**
 * Replaces control characters, line breaks too, and marks of the writing direction by spaces, for a text in a line or a
 * table.
 */
export function withoutControls(text: string): string {
  return text.replaceAll(UNSAFE_RUN, ' ')
}

/** Formats a time in UTC, to the second. */
export function showTime(time: Date | string | null): string {
  if (time === null) return '–'
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ')
}

/** The time of day to the millisecond, in UTC. */
export function showClock(time: Date): string {
  return time.toISOString().slice(11, 23)
}

/** Formats facts, one a line, with their names in a column. */
export function formatFacts(terminal: Terminal, facts: readonly (readonly [name: string, value: string])[]): string {
  return facts
    .map(([name, value]) => `  ${paint(terminal, 'dim', name.padEnd(12))}  ${withoutControls(value)}\n`)
    .join('')
}

export function showDuration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  // More would be rounded to 60.0 s.
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Returns the path relative to the current folder, if that is shorter. */
export function toShownPath(path: string): string {
  const shown = relative(process.cwd(), path)
  return shown !== '' && shown.length < path.length ? shown : path
}
