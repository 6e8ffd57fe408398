import { randomUUID } from 'node:crypto'
import type { Console, SignedIn } from './start-console.ts'

const DELIVERIES = 10_000
const SOURCES = ['Order intake', 'Billing', 'Warehouse', 'CRM', 'Newsletter'] as const
/** Deliveries of the first source that were answered 500, and another one that was answered 422. */
export const FAILED = 173
/** The order number of the payload that was answered 422. */
export const NEEDLE = 'NEEDLE-7731'

/**
 * Inserts the deliveries of a day, evenly over five sources, each with its run. The endpoint is that of every source.
 * Resolves to the id of the first source.
 */
export async function fillVolume({ endpoint, db: { pool } }: Console, owner: SignedIn): Promise<string> {
  const workflowId = randomUUID()
  const sourceIds = SOURCES.map(() => randomUUID())
  for (const [index, name] of SOURCES.entries()) {
    const example = { order_id: 'X-0000', customer: 'Jane Doe', total: 0.5 }
    await owner.saveSource({ name, endpoint_url: endpoint.url, example_request_body: example }, sourceIds[index])
  }
  const description = 'Send every order to "Order intake".'
  await owner.call('createWorkflow', {
    body: { id: workflowId, name: 'Forward orders', description, scope: 'company_wide' },
  })
  await owner.saveTrigger(workflowId)
  await owner.call('setWorkflowActive', { params: { workflow_id: workflowId }, body: { is_active: true } })
  await pool.query(
    `WITH new AS MATERIALIZED (
       SELECT number, gen_random_uuid() AS run_id, gen_random_uuid() AS session_id,
         ($2::uuid[])[1 + number % cardinality($2::uuid[])] AS source_id,
         now() - interval '1 day' + number * interval '23 hours' / $3 AS at,
         -- The newest of the first source, whose endpoint has a bad evening.
         CASE WHEN number % cardinality($2::uuid[]) = 0 THEN
           CASE WHEN number = $3 THEN 422
             WHEN number >= $3 - $4 * cardinality($2::uuid[]) THEN 500 END
         END AS failure
       FROM generate_series(1, $3) AS number
     ), sessions AS (
       INSERT INTO sessions (id, organization_id, last_start_number, last_finished_number, created_at)
       SELECT session_id, organization_id, 1, 1, at FROM new, workflows WHERE id = $1
     ), starts AS (
       INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status,
         error, attempts, created_at, started_at, finished_at)
       SELECT run_id, organization_id, id, session_id, 1, 'api', 'order_id: A-' || number, run_id::text,
         CASE WHEN failure IS NULL THEN 'succeeded' ELSE 'failed' END,
         'delivery_rejected: Order intake did not accept the payload: It answered ' || failure, 1, at, at, at
       FROM new, workflows WHERE id = $1
     )
     INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, reason, answer, duration_ms,
       request_body, session_id, run_id, request_id, created_at, finished_at, request_url)
     SELECT gen_random_uuid(), organization_id, source_id, 'payload',
       CASE WHEN failure IS NULL THEN 'accepted' ELSE 'rejected' END, coalesce(failure, 200),
       'The endpoint answered ' || failure || '.', CASE WHEN failure IS NULL THEN '{"ok":true}' END, 5 + number % 90,
       json_build_object('order_id', CASE failure WHEN 422 THEN $5 ELSE 'A-' || number END,
         'customer', 'Customer ' || number % 700, 'total', number % 500 + 0.5),
       session_id, run_id, run_id::text, at, at, $6
     FROM new, workflows WHERE id = $1`,
    [workflowId, sourceIds, DELIVERIES, FAILED, NEEDLE, endpoint.url],
  )
  await pool.query('ANALYZE deliveries, starts, sessions')
  return sourceIds[0]!
}
