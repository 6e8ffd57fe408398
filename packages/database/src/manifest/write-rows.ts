import type { Queryable } from '../connection/index.ts'

/** Runs a statement that reads its rows from `json_to_recordset($1)`: JSON has no limit of 65,535 parameters. */
export async function writeRows(client: Queryable, statement: string, rows: readonly object[]): Promise<void> {
  if (rows.length > 0) await client.query(statement, [JSON.stringify(rows)])
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
