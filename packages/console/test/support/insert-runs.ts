import type { Database } from '@workflow-service/database'

/** Inserts newer runs that have succeeded, each in a session of its own. */
export async function insertRuns(db: Pick<Database, 'pool'>, workflowId: string, count: number): Promise<void> {
  await db.pool.query(
    `WITH new AS MATERIALIZED (
       SELECT gen_random_uuid() AS id, gen_random_uuid() AS session_id, now() + number * interval '1 ms' AS at
       FROM generate_series(1, $2) AS number
     ), sessions AS (
       INSERT INTO sessions (id, organization_id, last_start_number, last_finished_number, created_at)
       SELECT session_id, organization_id, 1, 1, at FROM new, workflows WHERE workflows.id = $1
     )
     INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, attempts,
       created_at, started_at, finished_at)
     SELECT new.id, organization_id, workflows.id, session_id, 1, 'auto_run', '', new.id::text, 'succeeded', 1, at, at, at
     FROM new, workflows WHERE workflows.id = $1`,
    [workflowId, count],
  )
}
