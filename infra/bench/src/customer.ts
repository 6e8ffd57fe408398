import { newId } from '@workflow-service/database'
import type { Client } from 'pg'
import type { Bed, Service } from './bed.ts'
import { type Seeded, seedOrganization } from './seed.ts'

/** A customer with an endpoint, a webhook source that points at it, and a workflow that forwards to it. */
export interface Customer extends Seeded {
  readonly sourceId: string
  readonly workflowId: string
}

/** The same as a manifest would make, the source saved through the dispatcher and verified. */
export async function makeCustomer(bed: Bed, dispatcher: Service, endpointUrl: string): Promise<Customer> {
  const seeded = await seedOrganization(bed.client)
  const sourceId = newId()
  const saved = await fetch(
    `${dispatcher.url}/internal/organizations/${seeded.organizationId}/webhook-sources/${sourceId}`,
    {
      method: 'PUT',
      headers: bed.internalHeaders,
      body: JSON.stringify({
        name: 'Bench endpoint',
        description: 'Takes everything.',
        endpoint_url: endpointUrl,
        signing_secret: 'a secret of the benchmark, at least 32 bytes',
        example_request_body: { text: 'example' },
      }),
    },
  )
  if (saved.status !== 201) throw new Error(`The webhook source was not saved: ${await saved.text()}`)
  return { ...seeded, sourceId, workflowId: await makeWorkflow(bed.client, seeded.organizationId) }
}

/** An active workflow with one `api` trigger and one user that forwards its context to "Bench endpoint". */
export async function makeWorkflow(client: Client, organizationId: string): Promise<string> {
  const workflowId = newId()
  await client.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
     VALUES ($1, $2, 'Bench', 'Send it to "Bench endpoint".', 'company_wide', true, 'bench')`,
    [workflowId, organizationId],
  )
  await client.query(
    `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name) VALUES ($1, $2, true, 'api', 'API')`,
    [newId(), workflowId],
  )
  return workflowId
}

/** Starts the workflow through the public API, and resolves with the start's session. */
export async function start(gateway: Service, customer: Customer, context: string): Promise<string> {
  const answer = await fetch(`${gateway.url}/v1/workflows/${customer.workflowId}/start`, {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ context }),
  })
  if (answer.status !== 202) throw new Error(`The start was not accepted: ${await answer.text()}`)
  return ((await answer.json()) as { session_id: string }).session_id
}

/** Makes `count` starts in sessions of their own straight in the database, as the gateway would have recorded them. */
export async function queueStarts(client: Client, customer: Customer, count: number): Promise<void> {
  await client.query('BEGIN')
  await client.query(
    'CREATE TEMP TABLE queued ON COMMIT DROP AS SELECT gen_random_uuid() AS id FROM generate_series(1, $1::int)',
    [count],
  )
  await client.query(
    `INSERT INTO sessions (id, organization_id, last_start_number, waiting_since) SELECT id, $1, 1, now() FROM queued`,
    [customer.organizationId],
  )
  await client.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
     SELECT gen_random_uuid(), $1, $2, id, 1, 'api', 'queued start', 'bench' FROM queued`,
    [customer.organizationId, customer.workflowId],
  )
  await client.query('COMMIT')
}

/** Runs that have ended. */
export async function countFinished(client: Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM starts WHERE status IN ('succeeded', 'failed')`,
  )
  return rows[0]?.count ?? 0
}
