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

/** Returns these fields of a row with the names that JSON has: `created_at` for `createdAt`. */
export function toSnakeCase<Row>(row: Row, names: readonly (keyof Row & string)[]): object {
  return Object.fromEntries(names.map((name) => [name.replaceAll(/[A-Z]/g, toSnake), row[name]]))
}

function toSnake(letter: string): string {
  return `_${letter.toLowerCase()}`
}
