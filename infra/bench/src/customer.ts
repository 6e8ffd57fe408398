import { newId } from '@workflow-service/database'
import type { Client } from 'pg'
import type { Environment, Service } from './environment.ts'
import { seedOrganization, type SeededOrganization } from './seed.ts'

/** An organization with a webhook source and a workflow that forwards to it. */
export interface Customer extends SeededOrganization {
  readonly sourceId: string
  readonly workflowId: string
}

/** Creates a customer. The webhook source is saved, and thereby verified, through the dispatcher. */
export async function createCustomer(
  environment: Environment,
  dispatcher: Service,
  endpointUrl: string,
): Promise<Customer> {
  const organization = await seedOrganization(environment.client)
  const sourceId = newId()
  const saved = await fetch(
    `${dispatcher.url}/internal/organizations/${organization.organizationId}/webhook-sources/${sourceId}`,
    {
      method: 'PUT',
      headers: environment.internalHeaders,
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
  const workflowId = await createWorkflow(environment.client, organization.organizationId)
  return { ...organization, sourceId, workflowId }
}

/** Inserts an active workflow with an `api` trigger that forwards its context to "Bench endpoint". */
export async function createWorkflow(client: Client, organizationId: string): Promise<string> {
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

/** Starts the workflow through the public API, in a new session. */
export async function start(gateway: Service, customer: Customer, context: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/workflows/${customer.workflowId}/start`, {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ context }),
  })
  if (response.status !== 202) throw new Error(`The start was not accepted: ${await response.text()}`)
  await response.arrayBuffer()
}

/** Inserts starts as the gateway records them, each in a session of its own. */
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

/** Counts the runs that have ended. */
export async function countFinished(client: Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM starts WHERE status IN ('succeeded', 'failed')`,
  )
  return rows[0]?.count ?? 0
}
