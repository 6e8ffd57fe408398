import type { Client } from 'pg'

/** The organizations between which the rows are divided: the first one has half of them. */
const ORGANIZATIONS = 500
/** Of the first organization; each other one has one workflow and one webhook source. */
const WORKFLOWS_OF_FIRST = 20
const SOURCES_OF_FIRST = 5
/** The time over which the rows are spread, until now. */
export const SEEDED_DAYS = 100
/** Rows of `starts` in one INSERT. */
const CHUNK = 500_000

/** Ids of seeded rows, by their number. */
export interface LargeTables {
  readonly organizationId: string
  readonly apiKeyId: string
  readonly workflowId: string
  readonly sourceId: string
}

/**
 * The SQL for the id of the thing of this kind with the number `n`: made like the service's, so that indexes grow at
 * their end.
 */
const timeId = (kind: number, at: string, n: string): string =>
  `(lpad(to_hex((1000 * extract(epoch FROM ${at}))::bigint), 12, '0') || '7' || lpad(to_hex(${n} & 4095), 3, '0')
    || '8' || lpad(to_hex(${kind}), 3, '0') || lpad(to_hex(${n}), 12, '0'))::uuid`
const plainId = (kind: number, n: string): string =>
  `('${kind.toString(16).padStart(8, '0')}-0000-4000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`
const ORGANIZATION = 1
const WORKFLOW = 2
const SOURCE = 3
const API_KEY = 4
const idOf = (kind: number, n: number): string =>
  `${kind.toString(16).padStart(8, '0')}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`

/**
 * Fills an empty, migrated database with ended starts, each in a session of its own, with one delivery and three steps:
 * `rows` of each, and three times as many steps. 3 % of the runs failed; 1 in 1,000 has a delivery of which the outcome
 * is unknown. The client must be a superuser. With `wal_level = minimal` nothing of it is written to the log.
 */
export async function seedLargeTables(client: Client, rows: number, log: (line: string) => void): Promise<LargeTables> {
  await seedOrganizations(client)
  const { rows: indexes } = await client.query<{ definition: string; name: string }>(
    `SELECT indexdef AS definition, indexname AS name FROM pg_indexes
     WHERE schemaname = 'public' AND tablename IN ('starts', 'sessions', 'deliveries', 'run_steps')
       AND indexname NOT IN (SELECT conname FROM pg_constraint)`,
  )
  await client.query('BEGIN')
  // Without the triggers of foreign keys.
  await client.query(`SET LOCAL session_replication_role = replica`)
  await client.query(`SET LOCAL maintenance_work_mem = '512MB'`)
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`)
  await client.query('TRUNCATE starts, sessions, deliveries, run_steps, idempotency_keys, approvals CASCADE')
  for (let first = 1; first <= rows; first += CHUNK) {
    await seedChunk(client, first, Math.min(rows, first + CHUNK - 1), rows)
    log(
      `large tables: ${Math.min(rows, first + CHUNK - 1).toLocaleString('en')} of ${rows.toLocaleString('en')} starts`,
    )
  }
  for (const { definition, name } of indexes) {
    log(`large tables: index ${name}`)
    await client.query(definition)
  }
  await client.query('COMMIT')
  await client.query(
    `INSERT INTO usage_rollups (hour, has_unfinished)
     SELECT hour, false FROM generate_series(date_trunc('hour', now()) - interval '${SEEDED_DAYS + 1} days',
       date_trunc('hour', now()) - interval '1 hour', interval '1 hour') AS hour`,
  )
  log('large tables: VACUUM ANALYZE')
  await client.query('VACUUM (ANALYZE)')
  return {
    organizationId: idOf(ORGANIZATION, 0),
    apiKeyId: idOf(API_KEY, 0),
    workflowId: idOf(WORKFLOW, 0),
    sourceId: idOf(SOURCE, 0),
  }
}

async function seedOrganizations(client: Client): Promise<void> {
  const firstOnly = `CASE WHEN n < $1 THEN 0 ELSE n - $1 + 1 END`
  await client.query(
    `INSERT INTO organizations (id, name) SELECT ${plainId(ORGANIZATION, 'n')}, 'Organization ' || n
     FROM generate_series(0, ${ORGANIZATIONS - 1}) n`,
  )
  await client.query(
    `INSERT INTO users (id, organization_id, email)
     SELECT gen_random_uuid(), id, 'user@' || id || '.test' FROM organizations`,
  )
  await client.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes)
     SELECT ${plainId(API_KEY, 'n')}, ${plainId(ORGANIZATION, 'n')}, 'bench', 'wfk_' || lpad(n::text, 8, '0'),
       sha256(n::text::bytea), '{read,start}'
     FROM generate_series(0, ${ORGANIZATIONS - 1}) n`,
  )
  await client.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
     SELECT ${plainId(WORKFLOW, 'n')}, ${plainId(ORGANIZATION, firstOnly)}, 'Workflow ' || n, 'Send it to "Bench".',
       'company_wide', true, 'workflow'
     FROM generate_series(0, ${ORGANIZATIONS - 2} + $1::int) n`,
    [WORKFLOWS_OF_FIRST],
  )
  await client.query(
    `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name)
     SELECT gen_random_uuid(), id, true, 'api', 'API' FROM workflows`,
  )
  await client.query(
    `INSERT INTO webhook_sources (id, organization_id, name, name_key, description, endpoint_url, example_request_body)
     SELECT ${plainId(SOURCE, 'n')}, ${plainId(ORGANIZATION, firstOnly)}, 'Source ' || n, 'source ' || n, '',
       'https://hooks.example.com/' || n, '{"text": "example"}'
     FROM generate_series(0, ${ORGANIZATIONS - 2} + $1::int) n`,
    [SOURCES_OF_FIRST],
  )
}

/** Inserts the starts from `first` to `last`, with what belongs to them. */
async function seedChunk(client: Client, first: number, last: number, rows: number): Promise<void> {
  // Odd numbers belong to the first organization.
  await client.query(`DROP TABLE IF EXISTS seeded`)
  await client.query(
    `CREATE TEMP TABLE seeded ON COMMIT DROP AS
     SELECT n, at, ${timeId(5, 'at', 'n')} AS start_id, ${timeId(6, 'at', 'n')} AS session_id, ${timeId(7, 'at', 'n')} AS delivery_id,
       ${plainId(ORGANIZATION, 'organization')} AS organization_id, ${plainId(API_KEY, 'organization')} AS api_key_id,
       ${plainId(WORKFLOW, `CASE organization WHEN 0 THEN (n / 2) % ${WORKFLOWS_OF_FIRST} ELSE organization + ${WORKFLOWS_OF_FIRST} - 1 END`)}
         AS workflow_id,
       ${plainId(SOURCE, `CASE organization WHEN 0 THEN (n / 2) % ${SOURCES_OF_FIRST} ELSE organization + ${SOURCES_OF_FIRST} - 1 END`)}
         AS source_id
     FROM (
       SELECT n::bigint AS n, CASE n % 2 WHEN 1 THEN 0 ELSE 1 + (n / 2) % ${ORGANIZATIONS - 1} END::bigint AS organization,
         date_trunc('milliseconds', now() - interval '10 minutes'
           - (($3::float8 - n) / $3::float8) * interval '${SEEDED_DAYS} days') AS at
       FROM generate_series($1::bigint, $2::bigint) n
     ) AS numbered`
      .replaceAll('$1', String(first))
      .replaceAll('$2', String(last))
      .replaceAll('$3', String(rows)),
  )
  await client.query(
    `INSERT INTO sessions (id, organization_id, created_at, last_used_at, last_start_number, last_finished_number, lease_epoch)
     SELECT session_id, organization_id, at, at, 1, 1, 1 FROM seeded`,
  )
  await client.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, input_message, api_key_id, request_id,
       status, attempts, error, created_at, started_at, finished_at)
     SELECT start_id, organization_id, workflow_id, session_id, 1, 'api', 'order_id: A-' || n || E'\\ncustomer: Ada Lovelace',
       'New order', api_key_id, 'request-' || n, CASE n % 33 WHEN 0 THEN 'failed' ELSE 'succeeded' END, 1,
       CASE n % 33 WHEN 0 THEN 'delivery_rejected: The endpoint answered 500.' END,
       at, at + interval '5 milliseconds', at + interval '40 milliseconds'
     FROM seeded`,
  )
  await client.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, reason, duration_ms, answer, request_body,
       session_id, run_id, request_id, created_at, finished_at, request_url)
     SELECT delivery_id, organization_id, source_id, 'payload', outcome, status,
       CASE outcome WHEN 'accepted' THEN NULL ELSE 'The endpoint answered 500.' END, 12, '{"ok":true}',
       ('{"order_id":"A-' || n || '","customer":"Ada Lovelace","text":"example"}')::json, session_id, start_id, 'request-' || n,
       at + interval '10 milliseconds', at + interval '30 milliseconds', 'https://hooks.example.com/1'
     FROM seeded, LATERAL (
       SELECT CASE WHEN n % 33 = 0 THEN 'rejected' WHEN n % 1000 = 1 THEN 'unknown' ELSE 'accepted' END,
         CASE WHEN n % 33 = 0 THEN 500 WHEN n % 1000 = 1 THEN NULL ELSE 200 END
     ) AS ended (outcome, status)`,
  )
  await client.query(
    `INSERT INTO run_steps (run_id, position, kind, data, epoch, created_at)
     SELECT start_id, position, kind, CASE position
         WHEN 0 THEN '{"agent":"builtin","text":"New order\\n\\norder_id: A-' || n || '\\ncustomer: Ada Lovelace"}'
         WHEN 1 THEN '{"call_id":"1","name":"send","delivery":{"id":"' || delivery_id || '","source_id":"' || source_id
           || '","source_name":"Source","payload":{"order_id":"A-' || n || '","customer":"Ada Lovelace","text":"example"}}}'
         ELSE '{"call_id":"1","ok":true,"text":"Accepted with status 200.","delivery":{"id":"' || delivery_id || '","outcome":"accepted"}}'
       END::json, 1, at + interval '5 milliseconds'
     FROM seeded, (VALUES (0, 'message'), (1, 'tool_call'), (2, 'tool_result')) AS step (position, kind)`,
  )
}
