import type { PoolClient } from 'pg'

/** A table's columns with their types: what is written, and how it is read out of JSON. */
export type Columns<Row> = Record<keyof Row & string, string>

/** Large enough that a statement's cost vanishes, small enough that no statement holds hundreds of megabytes. */
const CHUNK_LENGTH = 4_000_000

/** Inserts the rows with few statements. Raw, since a JSON parameter has no limit of 65,535 values. */
export async function insertRows<Row extends object>(
  client: PoolClient,
  table: string,
  columns: Columns<Row>,
  rows: readonly Row[],
): Promise<void> {
  const names = Object.keys(columns)
  const text = `INSERT INTO ${table} (${names.join(', ')})
    SELECT ${names.map((name) => valueOf(name, columns)).join(', ')} FROM json_to_recordset($1) AS row(${typed(columns)})`
  for (const chunk of chunksOf(rows)) await client.query(text, [chunk])
}

/** Overwrites the rows with these ids. */
export async function updateRows<Row extends { id: string }>(
  client: PoolClient,
  table: string,
  columns: Columns<Row>,
  rows: readonly Row[],
): Promise<void> {
  const set = Object.keys(columns).map((name) => `${name} = ${valueOf(name, columns)}`)
  const text = `UPDATE ${table} SET ${set.join(', ')} FROM json_to_recordset($1) AS row(${typed(columns)})
    WHERE ${table}.id = row.id`
  for (const chunk of chunksOf(rows)) await client.query(text, [chunk])
}

/** JSON is handed over as text, so that it is stored to the letter. */
function typed(columns: Record<string, string>): string {
  return Object.entries(columns)
    .map(([name, type]) => `${name} ${type === 'json' ? 'text' : type}`)
    .join(', ')
}

function valueOf(name: string, columns: Record<string, string>): string {
  return columns[name] === 'json' ? `row.${name}::json` : `row.${name}`
}

function* chunksOf(rows: readonly object[]): Generator<string> {
  let chunk: string[] = []
  let length = 0
  for (const row of rows) {
    const text = JSON.stringify(row)
    if (length + text.length > CHUNK_LENGTH && chunk.length > 0) {
      yield `[${chunk.join(',')}]`
      chunk = []
      length = 0
    }
    chunk.push(text)
    length += text.length
  }
  if (chunk.length > 0) yield `[${chunk.join(',')}]`
}
