import { createDatabase, deleteOrganization, deleteOrganizationRows } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { openUnchecked, readNumber, type System } from '../shared/system.ts'

/**
 * Waits until nothing of a suspended organization is under way: no lease, no payload in flight. The runs that were
 * interrupted are queued again.
 */
export async function untilQuiet({ pool }: System, organizationId: string): Promise<void> {
  const query = `SELECT (SELECT count(*) FROM sessions WHERE organization_id = $1 AND lease_owner IS NOT NULL)::int
    + (SELECT count(*) FROM deliveries WHERE organization_id = $1 AND outcome = 'in_flight')::int AS value`
  await waitUntil(async () => (await readNumber(pool, query, [organizationId])) === 0, {
    timeoutMs: 120_000,
    intervalMs: 100,
    message: 'the runs of the organization to be interrupted',
  })
}

/** Tables whose rows belong to people, to an installation or to its processes. */
const STAYING = [
  'accounts',
  'gauge_reporters',
  'model_limits',
  'model_waits',
  'models',
  'runners',
  'schema_migrations',
  'sign_ins',
  'usage_rollups',
]

const ofParent = (column: string, parent: string, where = 'organization_id = $1'): string =>
  `${column} IN (SELECT id FROM ${parent} WHERE ${where})`
const OF_WORKFLOW = ofParent('workflow_id', 'workflows')
const OF_TRIGGER = ofParent('trigger_id', 'triggers', OF_WORKFLOW)
const OF_RUN = ofParent('run_id', 'starts')

/** The rows of organization $1 in tables that do not name it. */
const CONDITIONS: Readonly<Record<string, string>> = {
  organizations: 'id = $1',
  files: OF_WORKFLOW,
  idempotency_keys: ofParent('api_key_id', 'api_keys'),
  run_prompts: OF_RUN,
  run_steps: OF_RUN,
  subagent_sources: OF_TRIGGER,
  trigger_events: OF_TRIGGER,
  triggers: OF_WORKFLOW,
  workflow_version_files: OF_WORKFLOW,
  workflow_versions: OF_WORKFLOW,
}

/** The column that refers to a table that stays. */
const NULLED = { table: 'users', column: 'account_id' }

/**
 * Copies every row of an organization, in one snapshot of the source and one transaction of the target. Resolves to the
 * rows of each table that has some.
 * @throws Error for a table that neither belongs to organizations nor stays: a run that moves without its journal would
 *   send its payloads again.
 */
export async function copyOrganization(
  from: System,
  to: System,
  organizationId: string,
): Promise<ReadonlyMap<string, number>> {
  const unchecked = openUnchecked(to.postgres)
  const [source, target] = await Promise.all([from.pool.connect(), unchecked.connect()])
  try {
    await source.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await target.query('BEGIN')
    const copied = new Map<string, number>()
    const { rows: tables } = await source.query<{ name: string; columns: string[] }>(
      `SELECT relname AS name, array_agg(attname::text ORDER BY attnum) AS columns FROM pg_class
       JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
       WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1) GROUP BY 1 ORDER BY 1`,
      [STAYING],
    )
    for (const { name, columns } of tables) {
      const where = CONDITIONS[name] ?? (columns.includes('organization_id') ? 'organization_id = $1' : undefined)
      if (where === undefined) throw new Error(`Does ${name} move with an organization? Add it to a list.`)
      const { rows } = await source.query<{ row: string }>(
        `SELECT row_to_json(row)::text AS row FROM ${name} AS row WHERE ${where}`,
        [organizationId],
      )
      const values = columns.map((column) =>
        name === NULLED.table && column === NULLED.column ? 'NULL' : `"${column}"`,
      )
      await target.query(
        `INSERT INTO ${name} ("${columns.join('", "')}") SELECT ${values.join(', ')}
         FROM json_populate_recordset(NULL::${name}, $1::json)`,
        [`[${rows.map(({ row }) => row).join()}]`],
      )
      if (rows.length > 0) copied.set(name, rows.length)
    }
    await target.query('COMMIT')
    return copied
  } finally {
    // Ends an open transaction of either, also after an error.
    source.release(true)
    target.release(true)
    await unchecked.end()
  }
}

export async function deleteMoved({ postgres }: System, organizationId: string): Promise<void> {
  const db = createDatabase({ url: postgres.url, applicationName: 'trial', maxConnections: 2 })
  try {
    const principal = { organizationId, userId: null, name: '', address: null }
    await deleteOrganization(db, { principal, requestId: null })
    while (await deleteOrganizationRows(db));
  } finally {
    await db.close()
  }
}
