import { type Column, renderTable, type Terminal } from './terminal.ts'

export interface CommandResult {
  readonly json: unknown
  readonly text: (terminal: Terminal) => string
  /** 1 when a part of the command failed. Default 0. */
  readonly exitStatus?: 0 | 1
}

/** The result of a command that prints it as it goes: its exit status. */
export type PrintedResult = 0 | 1

/** The result of a command that lists rows: a table, or a JSON array. */
export function listResult<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  whenEmpty: string,
  toJson: (row: Row) => unknown = (row) => row,
): CommandResult {
  return { json: rows.map((row) => toJson(row)), text: (terminal) => renderTable(terminal, columns, rows, whenEmpty) }
}

/** Returns a function that prints rows as they come: as one table, or as one JSON object a line. */
export function createRowPrinter<Row>(terminal: Terminal, isJson = false) {
  let hasTitles = true
  return (rows: readonly Row[], columns: readonly Column<Row>[]): void => {
    if (rows.length === 0) return
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`)
    terminal.write(isJson ? lines.join('') : renderTable(terminal, columns, rows, '', { hasTitles }))
    hasTitles = false
  }
}
