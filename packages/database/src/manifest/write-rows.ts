import type { Queryable } from '../connection/index.ts'
import type { ManifestOutcome, PlannedRow } from './apply-context.ts'

/**
 * Inserts rows whose fields are named like the columns. The columns that they do not have get their defaults. As JSON,
 * which has no limit of 65,535 parameters.
 * @param computed SQL for further columns.
 */
export async function insertRows(
  client: Queryable,
  table: string,
  rows: readonly object[],
  computed: Readonly<Record<string, string>> = {},
): Promise<void> {
  if (rows.length === 0) return
  const columns = Object.keys(rows[0]!)
  const from = `SELECT ${[...columns, ...Object.values(computed)].join(', ')} FROM json_populate_recordset(NULL::${table}, $1)`
  const into = `${table} (${[...columns, ...Object.keys(computed)].join(', ')})`
  await client.query(`INSERT INTO ${into} ${from}`, [JSON.stringify(rows)])
}

/**
 * Inserts the rows of new things, and writes the columns of changed ones to the stored rows with their ids. `further`
 * is SQL for other columns of these.
 */
export async function writePlanned(
  client: Queryable,
  table: string,
  planned: readonly PlannedRow[],
  further: readonly string[] = [],
): Promise<void> {
  const rowsOf = (outcome: ManifestOutcome) =>
    planned.filter(({ thing }) => thing.outcome === outcome).map(({ row }) => row)
  await insertRows(client, table, rowsOf('created'))
  const changed = rowsOf('changed')
  if (changed.length === 0) return
  const columns = Object.keys(changed[0]!).filter((name) => name !== 'id')
  const assignments = [...columns.map((name) => `${name} = row.${name}`), ...further].join(', ')
  const from = `json_populate_recordset(NULL::${table}, $1) AS row WHERE ${table}.id = row.id`
  await client.query(`UPDATE ${table} SET ${assignments} FROM ${from}`, [JSON.stringify(changed)])
}
