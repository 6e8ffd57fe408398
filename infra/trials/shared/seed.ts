import { workflowSearchText } from '@workflow-service/database'
import type { Pool } from 'pg'
import type { Customer, Organization } from './customers.ts'

/** Inserts so many rows of what owns them, the first one so many days old, the others so many ms after each other. */
type Seed<Id extends keyof Customer> = (
  seeded: Seeded,
  owner: Pick<Customer, 'organizationId' | Id>,
  count: number,
  times?: { readonly days: number; readonly spacingMs: number },
) => Promise<void>

const TIMES = { days: 1, spacingMs: 10 }

interface Seeded {
  readonly pool: Pool
}

/** Search words: ten workflows contain the first, none the second. */
export const RARE_WORD = 'quokka'
export const ABSENT_WORD = 'narwhal'

/**
 * Inserts workflows. The pages that are measured (first, last, search) have 5 triggers, 10 users and 20 files per
 * workflow; at most `detailed` workflows at each end of the list have these, so that a million takes minutes.
 */
export async function seedWorkflows(
  { pool }: Seeded,
  { organizationId }: Pick<Organization, 'organizationId'>,
  count: number,
  { detailed = count, description = 'Post to Order intake.' } = {},
): Promise<void> {
  // Creating the index after the insert of a million rows saves minutes.
  const { rows: indexes } = await pool.query<{ definition: string }>(
    `SELECT indexdef AS definition FROM pg_indexes WHERE indexname = 'workflows_search'`,
  )
  await pool.query('DROP INDEX IF EXISTS workflows_search')
  const rare = workflowSearchText(`Workflow ${RARE_WORD}`, description)
  const plain = workflowSearchText('Workflow number', description)
  await pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text, created_at)
     SELECT gen_random_uuid(), $1, CASE WHEN is_rare THEN 'Workflow ${RARE_WORD}' ELSE 'Workflow number' END, $2, 'only_me', true,
            CASE WHEN is_rare THEN $3 ELSE $4 END, now() - interval '1 year' + n * interval '1 second'
     FROM (SELECT n, n % greatest($5 / 10, 1) = 0 AS is_rare FROM generate_series(1, $5) n) AS numbered`,
    [organizationId, description, rare, plain, count],
  )
  const { rows } = await pool.query<{ id: string }>(
    `(SELECT id FROM workflows WHERE organization_id = $1 ORDER BY created_at LIMIT $2) UNION
     (SELECT id FROM workflows WHERE organization_id = $1 ORDER BY created_at DESC LIMIT $2) UNION
     (SELECT id FROM workflows WHERE organization_id = $1 AND name LIKE '%${RARE_WORD}%' LIMIT 10)`,
    [organizationId, Math.min(detailed, 50)],
  )
  const ids = rows.map(({ id }) => id)
  await pool.query(
    `INSERT INTO workflow_users (organization_id, workflow_id, user_id)
     SELECT users.organization_id, detailed.id, users.id FROM unnest($2::uuid[]) AS detailed (id), users WHERE organization_id = $1`,
    [organizationId, ids],
  )
  await seedTriggers({ pool }, ids, 5)
  await pool.query(
    `INSERT INTO trigger_events (trigger_id, position, slug, name)
     SELECT id, n, 'event' || n, 'Event ' || n FROM triggers, generate_series(0, 1) n WHERE workflow_id = ANY ($1)`,
    [ids],
  )
  await pool.query(
    `INSERT INTO files (id, workflow_id, name, path, content)
     SELECT gen_random_uuid(), id, 'file' || n || '.md', '{docs}', repeat('text ', 2000)
     FROM unnest($1::uuid[]) AS detailed (id), generate_series(1, 20) n`,
    [ids],
  )
  for (const { definition } of indexes) {
    await pool.query(definition)
    await pool.query('ALTER INDEX workflows_search ALTER COLUMN 1 SET STATISTICS 0')
  }
  // Only what was filled: a plan that is made on a table that was analyzed while it was empty reads all of its rows.
  await pool.query('ANALYZE workflows, workflow_users, triggers, trigger_events, files')
}

export async function seedTriggers({ pool }: Seeded, workflowIds: readonly string[], count: number): Promise<void> {
  await pool.query(
    `INSERT INTO triggers (id, workflow_id, name, is_active, source_slug, source_name, created_at)
     SELECT gen_random_uuid(), workflow.id, 'Trigger ' || n, true, 'api', 'API', now() + n * interval '1 second'
     FROM unnest($1::uuid[]) AS workflow (id), generate_series(1, $2::int) n`,
    [workflowIds, count],
  )
}

/** The order with this number, as the text of a run and the payload of its delivery have it. */
const ORDER_TEXT = `'New order' || chr(10) || 'order_id: ORDER-' || order_number || chr(10) || 'customer: name' || order_number % 5000`
const ORDER_BODY = `json_build_object('order_id', 'ORDER-' || n, 'customer', 'name' || n % 5000, 'reference', md5(n::text))`

/** Inserts finished payload deliveries of the customer's webhook source, of its seeded runs if it has such. */
export const seedDeliveries: Seed<'sourceId'> = async (
  { pool },
  { organizationId, sourceId },
  count,
  { days, spacingMs } = TIMES,
) => {
  await pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, run_id, kind, outcome, status, duration_ms, request_body, created_at,
                             finished_at)
     SELECT uuidv7(at - now()), $1, $2, run.id, 'payload', CASE n % 10 WHEN 0 THEN 'rejected' ELSE 'accepted' END, 200, 12,
            ${ORDER_BODY}, at, at
     FROM generate_series(1, $3) n
     CROSS JOIN LATERAL (SELECT now() - $4 * interval '1 day' + n * $5::float8 * interval '1 millisecond') AS t (at)
     LEFT JOIN (
       SELECT id, row_number() OVER (ORDER BY created_at) AS n FROM starts WHERE organization_id = $1
     ) AS run USING (n)`,
    [organizationId, sourceId, count, days, spacingMs],
  )
  await pool.query('ANALYZE deliveries')
}

/** Inserts ended runs of the customer's workflow, ten in each session. */
export const seedRuns: Seed<'workflowId'> = async (
  { pool },
  { organizationId, workflowId },
  count,
  { days, spacingMs } = TIMES,
) => {
  await pool.query(
    `WITH seeded AS MATERIALIZED (
       SELECT uuidv7(at - now()) AS id, n, at FROM generate_series(0, ($3::int - 1) / 10) n,
         LATERAL (SELECT now() - $4 * interval '1 day' + n * 10 * $5::float8 * interval '1 millisecond') AS t (at)
     ), created AS (
       INSERT INTO sessions (id, organization_id, created_at, last_used_at, last_start_number, last_finished_number)
       SELECT id, $1, at, at, 10, 10 FROM seeded
     )
     INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, error,
                         attempts, created_at, started_at, finished_at)
     SELECT uuidv7(t.at - now()), $1, $2, id, number, 'api', ${ORDER_TEXT}, 'bench',
            CASE number WHEN 10 THEN 'failed' ELSE 'succeeded' END, CASE number WHEN 10 THEN 'seeded: It failed.' END,
            1, t.at, t.at, t.at + interval '20 milliseconds'
     FROM seeded, generate_series(1, 10) number,
          LATERAL (SELECT n * 10 + number) AS of_order (order_number),
          LATERAL (SELECT seeded.at + number * $5::float8 * interval '1 millisecond') AS t (at)`,
    [organizationId, workflowId, count, days, spacingMs],
  )
  await pool.query('ANALYZE sessions, starts')
}

/** Inserts a journal of four steps in two rows, as the service writes it, for each run. */
export async function seedJournals({ pool }: Seeded): Promise<void> {
  await pool.query(
    `INSERT INTO run_steps (run_id, position, kind, epoch, data, earlier_steps, created_at)
     SELECT id, position, kind, 1, json_build_object('call_id', '1', 'text', context), earlier, starts.created_at
     FROM starts, (VALUES (1, 'tool_call', '[{"kind":"message","data":{"agent":"builtin"}}]'::json),
       (3, 'note', '[{"kind":"tool_result","data":{"call_id":"1","ok":true}}]')) AS step (position, kind, earlier)`,
  )
  await pool.query('ANALYZE run_steps')
}

/** Inserts starts as the gateway records them, each in a new session. */
export const queueStarts: Seed<'workflowId'> = async ({ pool }, { organizationId, workflowId }, count) => {
  await pool.query(
    `WITH queued AS MATERIALIZED (
       SELECT gen_random_uuid() AS id FROM generate_series(1, $3::int)
     ), created AS (
       INSERT INTO sessions (id, organization_id, last_start_number, waiting_since) SELECT id, $1, 1, now() FROM queued
     )
     INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
     SELECT gen_random_uuid(), $1, $2, id, 1, 'api', 'text: queued start', 'bench' FROM queued`,
    [organizationId, workflowId, count],
  )
}
