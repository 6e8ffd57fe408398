import { readFileSync } from 'node:fs'
import type { QueryResult } from 'pg'
import type { Connection } from './client.ts'
import { violatedConstraint } from './database-unavailable.ts'

/** A column of the rows of a statement: its type in PostgreSQL, and that of the value that pg makes of it. */
export class Column<Value> {
  /** Exists for the compiler only. */
  declare readonly value: Value
  readonly type: string

  constructor(type: string) {
    this.type = type
  }

  get orNull(): Column<Value | null> {
    return this
  }
}

/** The columns that statements declare. PostgreSQL does not tell which can be null: `orNull` says so. */
export const column = {
  uuid: new Column<string>('uuid'),
  integer: new Column<number>('integer'),
  float8: new Column<number>('double precision'),
  boolean: new Column<boolean>('boolean'),
  timestamptz: new Column<Date>('timestamp with time zone'),
  bytea: new Column<Buffer>('bytea'),
  textArray: <Value extends string = string>() => new Column<Value[]>('text[]'),
  /** A text, or one of these. */
  text: <Value extends string = string>() => new Column<Value>('text'),
  json: <Value>() => new Column<Value>('json'),
}

type Columns = Record<string, Column<unknown>>

export type RowOfColumns<Of extends Columns> = { readonly [Name in keyof Of]: Of[Name]['value'] }

/** A statement that PostgreSQL parses and plans once for each connection. */
export interface Statement<Row> {
  /** The name under which it is prepared. */
  readonly name: string
  readonly text: string
  readonly columns: { readonly [Name in keyof Row]: Column<Row[Name]> }
}

export type RowOfStatement<Of> = Of extends Statement<infer Row> ? Row : never

/** What takes the place of `:NAME` in a file: a fragment that several statements share, or a limit. */
type Inserts = Readonly<Record<string, string | number>>

/**
 * Every statement that was loaded. A test prepares them and compares the columns with those of the migrated database.
 */
export const statements = new Map<string, Pick<Statement<unknown>, 'name' | 'text'> & { readonly columns: Columns }>()

/**
 * Loads the text of `AREA/sql/NAME.sql`, without its comments, and with the inserts in place of `:NAME`.
 * @throws Error when the file names an insert that is not given, or not one that is.
 */
export function sql(file: `${string}/${string}`, inserts: Inserts = {}): string {
  const [area, name] = file.split('/')
  const unused = new Set(Object.keys(inserts))
  const source = readFileSync(new URL(`../${area}/sql/${name}.sql`, import.meta.url), 'utf8')
  const filled = source
    .replaceAll(/^ *--.*\n/gm, '')
    .replaceAll(/(?<![:\w]):([A-Z][A-Z_]+)\b/g, (_match, key: string) => {
      const insert = inserts[key]
      if (insert === undefined) throw new Error(`${file}.sql: no insert ${key}`)
      unused.delete(key)
      return String(insert)
    })
  if (unused.size > 0) throw new Error(`${file}.sql has no :${[...unused].join(', :')}`)
  return filled.trim()
}

/** Declares the statement of `AREA/sql/NAME.sql`, which is prepared as NAME, and the columns that it returns. */
export function statement<Of extends Columns>(
  file: `${string}/${string}`,
  columns: Of,
  inserts?: Inserts,
): Statement<RowOfColumns<Of>> {
  const name = file.slice(file.indexOf('/') + 1)
  const loaded = { name, text: sql(file, inserts), columns }
  statements.set(name, loaded)
  return loaded
}

/** `answerWithinMs`: in place of the connection's `query_timeout`. */
export function runStatement<Row extends object>(
  db: Connection,
  { name, text: of }: Statement<Row>,
  values: unknown[],
  answerWithinMs?: number,
): Promise<QueryResult<Row>> {
  const query = { name, text: of, values, query_timeout: answerWithinMs }
  return db.pool.query<Row>(query)
}

/** Far more than one: each further attempt needs another transaction that inserts one of the rows at this moment. */
const MAX_ATTEMPTS = 5

/**
 * Runs a statement, or a transaction, that inserts the rows that it does not find: again when another one inserted one
 * of them at the same time, which is found then. ON CONFLICT writes 48 bytes more of write-ahead log for each row.
 */
export async function insertMissing<Result>(insert: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await insert()
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || violatedConstraint(error) === undefined) throw error
    }
  }
}
