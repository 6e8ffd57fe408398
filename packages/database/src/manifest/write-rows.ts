import type { Queryable } from '../connection/index.ts'

/** Few statements for many rows, and no statement of hundreds of megabytes. */
const MAX_CHUNK_LENGTH = 4_000_000

/**
 * Runs a statement that reads its rows from `json_to_recordset($1)`, with as many rows in each call as fit 4 MB. A JSON
 * parameter has no limit of 65,535 values.
 */
export async function writeRows(client: Queryable, statement: string, rows: readonly object[]): Promise<void> {
  for (const chunk of toChunks(rows)) await client.query(statement, [chunk])
}

function* toChunks(rows: readonly object[]): Generator<string> {
  let chunk: string[] = []
  let length = 0
  for (const row of rows) {
    const json = JSON.stringify(row)
    if (length + json.length > MAX_CHUNK_LENGTH && chunk.length > 0) {
      yield `[${chunk.join(',')}]`
      chunk = []
      length = 0
    }
    chunk.push(json)
    length += json.length
  }
  if (chunk.length > 0) yield `[${chunk.join(',')}]`
}
