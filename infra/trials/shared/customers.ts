import { createApiKey, hashApiKey, newId } from '@workflow-service/database'
import type { Pool } from 'pg'
import { FIELD } from './check-record.ts'
import { send } from './load.ts'
import { readNumber, type System } from './system.ts'

export interface Organization {
  readonly organizationId: string
  readonly apiKey: string
}

/** An organization whose workflow posts `{ text }` to each of its webhook sources, one after the other. */
export interface Customer extends Organization {
  readonly workflowId: string
  /** The first of the sources. */
  readonly sourceId: string
  /** Where the sources post to, below the endpoint's URL. */
  readonly paths: readonly string[]
}

/** Of every webhook source. */
export const SIGNING_SECRET = 'a secret of the trial, at least 32 bytes'
const SOURCE_NAMES = ['Order intake', 'Audit log']

/** Inserts an organization with an API key and ten users. */
export async function createOrganization({ pool }: { readonly pool: Pool }): Promise<Organization> {
  const organizationId = newId()
  const { key, prefix } = createApiKey()
  await pool.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organizationId, 'Trial'])
  await pool.query(
    `INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes) VALUES ($1, $2, 'trial', $3, $4, '{read,start}')`,
    [newId(), organizationId, prefix, hashApiKey(key)],
  )
  await pool.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name)
     SELECT gen_random_uuid(), $1, 'user' || n || '@trial.test', 'First' || n, 'Last' || n FROM generate_series(1, 10) n`,
    [organizationId],
  )
  return { organizationId, apiKey: key }
}

/**
 * Creates a customer with a webhook source for each path, one or two. The sources are not verified.
 * @param endpointUrl Default: the system's receiver.
 */
export async function createCustomer(
  system: System,
  paths: readonly string[] = [''],
  endpointUrl = system.receiver.url,
): Promise<Customer> {
  const organization = await createOrganization(system)
  const names = SOURCE_NAMES.slice(0, paths.length)
  const sourceIds: string[] = []
  for (const [index, name] of names.entries()) {
    const source = { name, endpointUrl: `${endpointUrl}${paths[index]}`, example: { text: 'example' } }
    const { sourceId, status, text } = await saveSource(system, organization, { ...source, isVerified: false })
    if (status !== 201) throw new Error(`The webhook source was not saved: ${text}`)
    sourceIds.push(sourceId)
  }
  const workflowId = await createWorkflow(system, organization, `Post to ${names.join(', then to ')}.`)
  return { ...organization, workflowId, sourceId: sourceIds[0] ?? '', paths }
}

/** Saves a new webhook source, with a verification request unless `isVerified` is false. Resolves to the response. */
export async function saveSource(
  { internalHeaders: headers, internalUrl }: System,
  { organizationId }: Pick<Organization, 'organizationId'>,
  source: { name: string; endpointUrl: string; example: object; isVerified?: boolean },
): Promise<{ sourceId: string; status: number; text: string }> {
  const sourceId = newId()
  const query = source.isVerified === false ? '?verify=never' : ''
  const body = JSON.stringify({
    name: source.name,
    description: 'Takes everything.',
    endpoint_url: source.endpointUrl,
    signing_secret: SIGNING_SECRET,
    example_request_body: source.example,
  })
  const path = `/internal/organizations/${organizationId}/webhook-sources/${sourceId}${query}`
  const response = await fetch(internalUrl() + path, { method: 'PUT', headers, body })
  return { sourceId, status: response.status, text: await response.text() }
}

/** Inserts an active workflow with an `api` trigger. */
export async function createWorkflow(
  { pool }: { readonly pool: Pool },
  { organizationId }: Pick<Organization, 'organizationId'>,
  description: string,
): Promise<string> {
  const workflowId = newId()
  await pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, is_active, search_text)
     VALUES ($1, $2, 'Trial', $3, 'company_wide', true, 'trial')`,
    [workflowId, organizationId, description],
  )
  await pool.query(
    `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name) VALUES ($1, $2, true, 'api', 'API')`,
    [newId(), workflowId],
  )
  return workflowId
}

/** Starts a workflow through the public API. Resolves to the id of the start. */
export async function startWorkflow(
  gatewayUrl: string,
  customer: Organization & Pick<Customer, 'workflowId'>,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const body = JSON.stringify({ context: `${FIELD}${text}` })
  const request = { method: 'POST', headers: { ...apiHeadersOf(customer), ...headers }, body, status: 202 } as const
  const response = await send(`${gatewayUrl}/v1/workflows/${customer.workflowId}/start`, request)
  return (JSON.parse(response) as { id: string }).id
}

/** The headers of an organization's requests to the public API. */
export function apiHeadersOf({ apiKey }: Organization): Record<string, string> {
  return { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
}

/** The number of starts that have not ended: of all organizations, or of one. */
export async function countUnfinished(pool: Pool, organizationId: string | null = null): Promise<number> {
  const query = `SELECT coalesce(sum(last_start_number - last_finished_number), 0)::int AS value FROM sessions
    WHERE last_finished_number < last_start_number AND ($1::uuid IS NULL OR organization_id = $1)`
  return await readNumber(pool, query, [organizationId])
}
