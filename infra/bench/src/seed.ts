import { createApiKey, hashApiKey, newId, workflowSearchText } from '@workflow-service/database'
import type { Client } from 'pg'

/** An organization with data to measure on. */
export interface SeededOrganization {
  readonly organizationId: string
  readonly apiKey: string
}

/** Inserts an organization with an API key and ten users. */
export async function seedOrganization(client: Client): Promise<SeededOrganization> {
  const organizationId = newId()
  const { key, prefix } = createApiKey()
  await client.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organizationId, 'Bench'])
  await client.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes) VALUES ($1, $2, 'bench', $3, $4, '{read,start}')`,
    [newId(), organizationId, prefix, hashApiKey(key)],
  )
  await client.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name)
     SELECT gen_random_uuid(), $1, 'user' || n || '@bench.test', 'First' || n, 'Last' || n FROM generate_series(1, 10) n`,
    [organizationId],
  )
  return { organizationId, apiKey: key }
}

/** Search words: ten workflows contain the first, none the second. */
export const RARE_WORD = 'quokka'
export const ABSENT_WORD = 'narwhal'

/**
 * Inserts workflows. The pages that are measured (first, last, search) have 5 triggers, 10 users and 20 files per
 * workflow; at most `detailed` workflows at each end of the list have these, so that a million takes minutes.
 */
export async function seedWorkflows(
  client: Client,
  { organizationId }: SeededOrganization,
  count: number,
  { detailed = count, description = 'Send it to "Bench endpoint".' } = {},
): Promise<void> {
  // Creating the index after the insert of a million rows saves minutes.
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE indexname = 'workflows_search'`,
  )
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`)
  const rare = workflowSearchText(`Workflow ${RARE_WORD}`, description)
  const plain = workflowSearchText('Workflow number', description)
  await client.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text, created_at)
     SELECT gen_random_uuid(), $1, CASE WHEN is_rare THEN 'Workflow ${RARE_WORD}' ELSE 'Workflow number' END, $2, 'only_me', true,
            CASE WHEN is_rare THEN $3 ELSE $4 END, now() - interval '1 year' + n * interval '1 second'
     FROM (SELECT n, n % greatest($5 / 10, 1) = 0 AS is_rare FROM generate_series(1, $5) n) AS numbered`,
    [organizationId, description, rare, plain, count],
  )
  await client.query(
    `CREATE TEMP TABLE detailed AS
     (SELECT id FROM workflows WHERE organization_id = $1 ORDER BY created_at LIMIT $2) UNION
     (SELECT id FROM workflows WHERE organization_id = $1 ORDER BY created_at DESC LIMIT $2) UNION
     (SELECT id FROM workflows WHERE organization_id = $1 AND name LIKE '%${RARE_WORD}%' LIMIT 10)`
      .replaceAll('$1', `'${organizationId}'`)
      .replaceAll('$2', String(Math.min(detailed, 50))),
  )
  await client.query(
    `INSERT INTO workflow_users (organization_id, workflow_id, user_id)
     SELECT users.organization_id, detailed.id, users.id FROM detailed, users WHERE users.organization_id = $1`,
    [organizationId],
  )
  await client.query(
    `INSERT INTO triggers (id, workflow_id, name, is_active, source_slug, source_name, created_at)
     SELECT gen_random_uuid(), detailed.id, 'Trigger ' || n, true, 'api', 'API', now() + n * interval '1 second'
     FROM detailed, generate_series(1, 5) n`,
  )
  await client.query(
    `INSERT INTO trigger_events (trigger_id, position, slug, name)
     SELECT triggers.id, n, 'event' || n, 'Event ' || n FROM detailed JOIN triggers ON workflow_id = detailed.id, generate_series(0, 1) n`,
  )
  await client.query(
    `INSERT INTO files (id, workflow_id, name, path, content)
     SELECT gen_random_uuid(), detailed.id, 'file' || n || '.md', '{docs}', repeat('text ', 2000) FROM detailed, generate_series(1, 20) n`,
  )
  await client.query('DROP TABLE detailed')
  await client.query(`SET maintenance_work_mem = '1GB'`)
  for (const { name, definition } of indexes) {
    await client.query(definition)
    await client.query(`ALTER INDEX ${name} ALTER COLUMN 1 SET STATISTICS 0`)
  }
  await client.query('ANALYZE')
}

/** Inserts finished payload deliveries of one webhook source. */
export async function seedDeliveries(
  client: Client,
  organizationId: string,
  sourceId: string,
  count: number,
): Promise<void> {
  await client.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, duration_ms, request_body, created_at, finished_at)
     SELECT gen_random_uuid(), $1, $2, 'payload', CASE n % 10 WHEN 0 THEN 'rejected' ELSE 'accepted' END, 200, 12,
            json_build_object('order_id', n), now() - interval '1 day' + n * interval '10 milliseconds', now()
     FROM generate_series(1, $3) n`,
    [organizationId, sourceId, count],
  )
  await client.query('ANALYZE deliveries')
}

/** Inserts ended runs of one workflow, ten in each session. */
export async function seedRuns(
  client: Client,
  organizationId: string,
  workflowId: string,
  count: number,
): Promise<void> {
  await client.query(
    `CREATE TEMP TABLE seeded_sessions AS
     SELECT gen_random_uuid() AS id, n FROM generate_series(0, ($1::int - 1) / 10) n`,
    [count],
  )
  await client.query(
    `INSERT INTO sessions (id, organization_id, last_start_number, last_finished_number)
     SELECT id, $1, 10, 10 FROM seeded_sessions`,
    [organizationId],
  )
  await client.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, error,
                         attempts, created_at, started_at, finished_at)
     SELECT gen_random_uuid(), $1, $2, id, number, 'api', 'a seeded start', 'bench',
            CASE number WHEN 10 THEN 'failed' ELSE 'succeeded' END, CASE number WHEN 10 THEN 'seeded: It failed.' END,
            1, at, at, at + interval '20 milliseconds'
     FROM seeded_sessions, generate_series(1, 10) number,
          LATERAL (SELECT now() - interval '1 day' + (n * 10 + number) * interval '10 milliseconds') AS t (at)`,
    [organizationId, workflowId],
  )
  await client.query('DROP TABLE seeded_sessions')
  await client.query('ANALYZE sessions, starts')
}
