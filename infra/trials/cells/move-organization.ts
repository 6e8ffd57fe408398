import { setTimeout as pause } from 'node:timers/promises'
import { createDatabase, deleteOrganization, deleteOrganizationRows } from '@workflow-service/database'
import type { Pool, PoolClient } from 'pg'

/** The PostgreSQL of a cell. */
export interface CellDatabase {
  readonly pool: Pool
  readonly url: string
}

const ROWS_PER_BATCH = 500
const POLL_MS = 100

/**
 * Waits until nothing of a suspended organization is under way: no lease, no payload in flight. The runs that were
 * interrupted are queued again.
 */
export async function untilQuiet({ pool }: CellDatabase, organizationId: string): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ isBusy: boolean }>(
      `SELECT EXISTS (SELECT FROM sessions WHERE organization_id = $1 AND lease_owner IS NOT NULL)
         OR EXISTS (SELECT FROM deliveries WHERE organization_id = $1 AND outcome = 'in_flight') AS "isBusy"`,
      [organizationId],
    )
    if (rows[0]?.isBusy === false) return
    await pause(POLL_MS)
  }
}

/** Tables whose rows belong to people, to an installation or to its processes. */
const STAYING = [
  'accounts',
  'gauge_reporters',
  'model_limits',
  'models',
  'runners',
  'schema_migrations',
  'sign_ins',
  'usage_rollups',
]

/** The references that no foreign key states, because it would lock a row for each step of a run. */
const OTHER_REFERENCES: readonly Reference[] = [
  { child: 'run_steps', column: 'run_id', parent: 'starts', key: 'id', isRequired: true },
]

/**
 * Copies every row of an organization, in one snapshot of the source and one transaction of the target. Resolves to the
 * rows of each table. The tables and their order are those of the references between them.
 * @throws Error for a table that is neither reached by them nor one of those that stay: a run that moves without its
 *   journal would send its payloads again.
 */
export async function copyOrganization(
  from: CellDatabase,
  to: CellDatabase,
  organizationId: string,
): Promise<ReadonlyMap<string, number>> {
  const [source, target] = await Promise.all([from.pool.connect(), to.pool.connect()])
  try {
    await source.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await target.query('BEGIN')
    const copied = new Map<string, number>()
    for (const table of await listTables(source))
      copied.set(table.name, await copyRows(source, target, table, organizationId))
    await target.query('COMMIT')
    return copied
  } finally {
    // Ends an open transaction of either, also after an error.
    source.release(true)
    target.release(true)
  }
}

export async function deleteMoved({ url }: CellDatabase, organizationId: string): Promise<void> {
  const db = createDatabase({ url, applicationName: 'trial', maxConnections: 2 })
  try {
    const principal = { organizationId, userId: null, name: '', address: null }
    await deleteOrganization(db, { principal, requestId: null })
    while (await deleteOrganizationRows(db));
  } finally {
    await db.close()
  }
}

interface Table {
  readonly name: string
  /** The condition for its rows of organization $1. */
  readonly where: string
  /** The columns as they are copied: those that refer to rows that stay are null. */
  readonly columns: readonly { readonly name: string; readonly isNulled: boolean }[]
}

interface Reference {
  readonly child: string
  readonly column: string
  readonly parent: string
  readonly key: string
  readonly isRequired: boolean
}

/** Lists the tables with rows of an organization, each after those that it refers to. */
async function listTables(client: PoolClient): Promise<Table[]> {
  const { rows: all } = await client.query<{ name: string; columns: string[] }>(
    `SELECT relname AS name, array_agg(attname::text ORDER BY attnum) AS columns FROM pg_class
     JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
     WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY 1 ORDER BY 1`,
  )
  // The last column of a key of two, which begins with the organization.
  const { rows: foreignKeys } = await client.query<Reference>(
    `SELECT child.relname AS child, own.attname AS column, parent.relname AS parent, other.attname AS key,
       own.attnotnull AS "isRequired"
     FROM pg_constraint
     JOIN pg_class AS child ON child.oid = conrelid
     JOIN pg_class AS parent ON parent.oid = confrelid
     JOIN pg_attribute AS own ON own.attrelid = conrelid AND own.attnum = conkey[array_upper(conkey, 1)]
     JOIN pg_attribute AS other ON other.attrelid = confrelid AND other.attnum = confkey[array_upper(confkey, 1)]
     WHERE contype = 'f' AND conrelid <> confrelid`,
  )
  const references = [...foreignKeys, ...OTHER_REFERENCES]
  const tables = new Map<string, Table>()
  const toTable = ({ name, columns }: (typeof all)[number]): Table | undefined => {
    const own = references.filter(({ child }) => child === name)
    const parents = own.filter(({ parent }) => tables.has(parent))
    const stays = own.filter(({ parent }) => !tables.has(parent))
    // Either waits for a table that it refers to, or belongs to what stays.
    if (stays.some(({ isRequired, parent }) => isRequired || canBeMoved(parent))) return undefined
    const [through] = parents.filter(({ isRequired }) => isRequired)
    let where: string
    if (name === 'organizations') where = 'id = $1'
    else if (columns.includes('organization_id')) where = 'organization_id = $1'
    else if (through)
      where = `${through.column} IN (SELECT ${through.key} FROM ${through.parent} WHERE ${tables.get(through.parent)!.where})`
    else return undefined
    return {
      name,
      where,
      columns: columns.map((column) => ({ name: column, isNulled: stays.some((each) => each.column === column) })),
    }
  }
  /** Whether rows of the table belong to an organization, directly or by what they refer to. */
  const canBeMoved = (name: string, seen: readonly string[] = []): boolean =>
    name === 'organizations' ||
    references.some(
      ({ child, parent, isRequired }) =>
        child === name && isRequired && !seen.includes(parent) && canBeMoved(parent, [...seen, name]),
    )
  for (let size = -1; size !== tables.size;) {
    size = tables.size
    for (const each of all) {
      const table = tables.has(each.name) ? undefined : toTable(each)
      if (table) tables.set(each.name, table)
    }
  }
  const unknown = all.map(({ name }) => name).filter((name) => !tables.has(name) && !STAYING.includes(name))
  if (unknown.length > 0) throw new Error(`Does ${unknown.join(', ')} move with an organization? Add it to the lists.`)
  return [...tables.values()]
}

async function copyRows(
  source: PoolClient,
  target: PoolClient,
  { name, where, columns }: Table,
  organizationId: string,
): Promise<number> {
  const names = columns.map((column) => `"${column.name}"`).join(', ')
  const values = columns.map((column) => (column.isNulled ? 'NULL' : `"${column.name}"`)).join(', ')
  // The id is escaped by its type: DECLARE takes no parameters.
  await source.query(
    `DECLARE moved CURSOR FOR SELECT row_to_json(row)::text AS row FROM ${name} AS row WHERE ${where.replaceAll('$1', `'${organizationId}'::uuid`)}`,
  )
  let copied = 0
  for (;;) {
    const { rows } = await source.query<{ row: string }>(`FETCH ${ROWS_PER_BATCH} FROM moved`)
    if (rows.length === 0) break
    const { rowCount } = await target.query(
      `INSERT INTO ${name} (${names}) SELECT ${values} FROM json_populate_recordset(NULL::${name}, $1::json)`,
      [`[${rows.map(({ row }) => row).join()}]`],
    )
    copied += rowCount ?? 0
  }
  await source.query('CLOSE moved')
  return copied
}
