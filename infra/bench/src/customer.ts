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
  const source = { name: 'Bench endpoint', endpointUrl, example: { text: 'example' } }
  const { sourceId, status, text } = await saveSource(environment, dispatcher, organization, source)
  if (status !== 201) throw new Error(`The webhook source was not saved: ${text}`)
  const workflowId = await createWorkflow(environment.client, organization.organizationId)
  return { ...organization, sourceId, workflowId }
}

/** Saves a new webhook source, with a verification request unless `isVerified` is false. Resolves to the answer. */
export async function saveSource(
  { internalHeaders: headers }: Environment,
  dispatcher: Service,
  { organizationId }: Pick<SeededOrganization, 'organizationId'>,
  source: { name: string; endpointUrl: string; example: object; isVerified?: boolean },
): Promise<{ sourceId: string; status: number; text: string }> {
  const sourceId = newId()
  const query = source.isVerified === false ? '?verify=never' : ''
  const body = JSON.stringify({
    name: source.name,
    description: 'Takes everything.',
    endpoint_url: source.endpointUrl,
    signing_secret: 'a secret of the benchmark, at least 32 bytes',
    example_request_body: source.example,
  })
  const path = `/internal/organizations/${organizationId}/webhook-sources/${sourceId}${query}`
  const response = await fetch(dispatcher.url + path, { method: 'PUT', headers, body })
  return { sourceId, status: response.status, text: await response.text() }
}

/** Inserts an active workflow with an `api` trigger. By default it forwards its context to "Bench endpoint". */
export async function createWorkflow(
  client: Client,
  organizationId: string,
  description = 'Send it to "Bench endpoint".',
): Promise<string> {
  const workflowId = newId()
  await client.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
     VALUES ($1, $2, 'Bench', $3, 'company_wide', true, 'bench')`,
    [workflowId, organizationId, description],
  )
  await client.query(
    `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name) VALUES ($1, $2, true, 'api', 'API')`,
    [newId(), workflowId],
  )
  return workflowId
}

/** Starts the workflow through the public API, in a new session: its payload is `{ text }`. */
export async function start(gateway: Service, customer: Customer, text: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/workflows/${customer.workflowId}/start`, {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ context: `text: ${text}` }),
  })
  if (response.status !== 202) throw new Error(`The start was not accepted: ${await response.text()}`)
  await response.arrayBuffer()
}

/** Inserts starts as the gateway records them, each in a new session. */
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
     SELECT gen_random_uuid(), $1, $2, id, 1, 'api', 'text: queued start', 'bench' FROM queued`,
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
