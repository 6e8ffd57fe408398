import type { Queryable } from '../connection/index.ts'

/** Few statements for many rows, and no statement of hundreds of megabytes. */
const MAX_CHUNK_LENGTH = 4_000_000

/**
 * Runs a statement that reads its rows from `json_to_recordset($1)`, with as many rows in each call as fit 4 MB. A JSON
 * parameter has no limit of 65,535 values.
 */
export async function writeRows(client: Queryable, statement: string, rows: readonly object[]): Promise<void> {
  for (const chunk of inChunks(serialize(rows), MAX_CHUNK_LENGTH, ({ length }) => length)) {
    await client.query(statement, [`[${chunk.join(',')}]`])
  }
}

/** Inserts rows whose fields are named like the columns. The columns that they do not have get their defaults. */
export async function insertRows(client: Queryable, table: string, rows: readonly object[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {}).join(', ')
  const from = `SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1)`
  await writeRows(client, `INSERT INTO ${table} (${columns}) ${from}`, rows)
}

/** Writes the columns that the rows have to the stored rows with their ids. `further` is SQL for other columns. */
export async function updateRows(
  client: Queryable,
  table: string,
  rows: readonly object[],
  further: readonly string[] = [],
): Promise<void> {
  const columns = Object.keys(rows[0] ?? {}).filter((name) => name !== 'id')
  const assignments = [...columns.map((name) => `${name} = row.${name}`), ...further].join(', ')
  const from = `json_populate_recordset(NULL::${table}, $1) AS row`
  await writeRows(client, `UPDATE ${table} SET ${assignments} FROM ${from} WHERE ${table}.id = row.id`, rows)
}

function* serialize(rows: readonly object[]): Generator<string> {
  for (const row of rows) yield JSON.stringify(row)
}

/** Divides items into chunks of at most this size; a larger item is a chunk by itself. */
export function* inChunks<Item>(
  items: Iterable<Item>,
  maxSize: number,
  sizeOf: (item: Item) => number,
): Generator<Item[]> {
  let chunk: Item[] = []
  let size = 0
  for (const item of items) {
    if (chunk.length > 0 && size + sizeOf(item) > maxSize) {
      yield chunk
      chunk = []
      size = 0
    }
    chunk.push(item)
    size += sizeOf(item)
  }
  if (chunk.length > 0) yield chunk
}
