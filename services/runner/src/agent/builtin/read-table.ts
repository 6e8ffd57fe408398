import { parse } from 'csv-parse/sync'
import { toWords } from './name-words.ts'
import { type ContextObject, type KnownNames, toObject } from './context-value.ts'
import { addUnit, splitUnit } from './name-unit.ts'

/** A table between the lines of a text. */
export interface TextTable {
  readonly rows: readonly ContextObject[]
  /** The names and values of a table with a column of names and one of values, and the sums below a table. */
  readonly pairs: readonly (readonly [string, string])[]
  readonly lineCount: number
  /** Why the table cannot be read. */
  readonly problem: string | undefined
}

/** A line of the text, without its indentation. */
interface TableLine {
  readonly text: string
  readonly isAfterBlank: boolean
}

function isPartOfTable(line: TableLine | undefined, delimiter: string): boolean {
  return line !== undefined && !line.isAfterBlank && line.text.includes(delimiter)
}

const SEPARATOR_ROW = /^\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?$/
/** The first cell of a row that is no item. */
const SUM = /^(?:grand |sub-?)?totals?:?$|^sum(?:me)?:?$|^gesamt(?:summe|betrag)?:?$|^(?:合計|小計)/iu

/**
 * Reads a Markdown table, or values that are separated by tabs, semicolons or commas, from the line at `start`. Undefined
 * if no table begins there: at least half of its column titles must be known, or half of the first of its two columns.
 */
export function readTable(lines: readonly TableLine[], start: number, known: KnownNames): TextTable | undefined {
  const header = lines[start]?.text ?? ''
  const next = lines[start + 1]?.text
  if (next === undefined || lines[start + 1]?.isAfterBlank) return undefined
  if (header.includes('|') && !SEPARATOR_ROW.test(header) && SEPARATOR_ROW.test(next) && next.includes('-')) {
    let end = start + 2
    while (isPartOfTable(lines[end], '|')) end += 1
    const cells = [header, ...lines.slice(start + 2, end).map(({ text }) => text)].map(splitMarkdownRow)
    return toTable(cells, end - start, known)
  }
  for (const delimiter of ['\t', ';', '|', ',']) {
    if (!header.includes(delimiter) || !next.includes(delimiter)) continue
    const titles = parseRows(header, delimiter)?.[0]
    if (!titles || titles.length < 2 || !areKnown(titles, known)) continue
    let end = start + 1
    while (isPartOfTable(lines[end], delimiter)) end += 1
    const rows = lines.slice(start, end).map(({ text }) => text)
    const cells = parseRows(rows.join('\n'), delimiter)
    return toTable(cells ?? [titles], end - start, known)
  }
  const titles = splitSpaces(header)
  if (titles.length < 2 || splitSpaces(next).length < 2) return undefined
  // "Full name    Ada" is a name with its value.
  if (!areKnown(titles, known) || titles.filter((title) => isKnown(title, known)).length < 2) return undefined
  let end = start + 1
  while (lines[end] && !lines[end]?.isAfterBlank && splitSpaces(lines[end]?.text ?? '').length > 1) end += 1
  return toTable(
    lines.slice(start, end).map(({ text }) => splitSpaces(text)),
    end - start,
    known,
  )
}

/** The cells of a line whose columns are apart by two spaces at least, or by a wide one. */
function splitSpaces(text: string): string[] {
  return text.split(/\s{2,}|\u3000+/u)
}

function parseRows(text: string, delimiter: string): string[][] | undefined {
  try {
    return parse(text, { delimiter, trim: true, relax_column_count: true, skip_empty_lines: true })
  } catch {
    return undefined
  }
}

function splitMarkdownRow(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inner.split(/(?<!\\)\|/).map((cell) => plainCell(cell.replaceAll('\\|', '|').trim()))
}

function plainCell(cell: string): string {
  return /^(\*\*|__|`)(?<text>[^*_`]+)\1$/u.exec(cell)?.groups?.['text'] ?? cell
}

function areKnown(titles: readonly string[], known: KnownNames): boolean {
  return titles.filter((title) => isKnown(title, known)).length * 2 >= titles.length
}

function isKnown(title: string, known: KnownNames): boolean {
  return title !== '' && known.isField(toWords(splitUnit(title).name))
}

function toTable(cells: readonly (readonly string[])[], lineCount: number, known: KnownNames): TextTable | undefined {
  const [titles = [], ...body] = cells
  // A column of names and one of values, with or without titles.
  const isNames =
    titles.length === 2 &&
    !isKnown(titles[1] ?? '', known) &&
    body.length > 0 &&
    areKnown(
      body.map(([name = '']) => name),
      known,
    )
  if (isNames) {
    const pairs = (isKnown(titles[0] ?? '', known) ? cells : body).map(
      ([name = '', value = '']) => [name, value] as const,
    )
    return { rows: [], pairs, lineCount, problem: undefined }
  }
  if (!areKnown(titles, known)) return undefined
  const columns = titles.map(splitUnit)
  const rows: ContextObject[] = []
  const pairs: [string, string][] = []
  for (const row of body) {
    const first = row.find((cell) => cell !== '') ?? ''
    if (SUM.test(first)) {
      const sums = row.flatMap((cell, index) =>
        cell === '' || cell === first ? [] : [{ cell, name: titles[index] ?? '' }],
      )
      // Below "Quantity" and "Amount" the sum is the amount.
      const amounts = sums.filter(({ name }) =>
        /(?:^| )(?:total|amount|price)(?: |$)/.test(toWords(splitUnit(name).name)),
      )
      const [sum, ...others] = sums.length > 1 ? amounts : sums
      if (sum && others.length === 0) pairs.push([first, sum.cell])
    } else if (row.length === titles.length)
      rows.push(toObject(columns.map(({ name, unit }, index) => [name, addUnit(row[index] ?? '', unit)])))
    else {
      const problem = `a row of a table has ${row.length} cells instead of ${titles.length}: ${JSON.stringify(row.join(' | ').slice(0, 80))}`
      return { rows: [], pairs: [], lineCount, problem }
    }
  }
  return { rows, pairs, lineCount, problem: body.length === 0 ? 'a table cannot be read' : undefined }
}
