import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ErrorResponse, WebhookSourceIn, WorkflowStartOut } from '@workflow-service/contract'
import {
  createSetupLink,
  type Database,
  findWebhookSource,
  listOrganizations,
  listRuns,
  type OrganizationName,
  showRun,
} from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import type { InternalClient } from '@workflow-service/service-kit/internal-client'
import got from 'got'
import { parse } from 'yaml'
import { isDemoEndpoint } from './demo-endpoint.ts'
import { LocalStackError } from './local-stack-error.ts'

/** The values of the placeholders in demo.yaml. */
export interface DemoValues {
  readonly DEMO_API_KEY: string
  readonly DEMO_ENDPOINT_URL: string
  readonly DEMO_SIGNING_SECRET: string
}

/** The manifest of demo.yaml, the workflow that the demo starts, and the webhook source that the workflow sends to. */
export type Demo = Awaited<ReturnType<typeof readDemo>>

/** Reads demo.yaml and fills in the values. */
export async function readDemo(values: DemoValues) {
  const text = await readFile(new URL('../demo.yaml', import.meta.url), 'utf8')
  const filled = text.replaceAll(/\$\{(\w+)\}/g, (_match, name: string) => values[name as keyof DemoValues])
  const manifest = toManifest(parse(filled))
  const { organization, workflows: [workflow] = [], webhook_sources: [source] = [] } = manifest
  if (!organization.id || !workflow?.id || !source?.id)
    throw new Error('demo.yaml must have ids for its organization, first workflow and first webhook source')
  const { id: _id, verify: _verify, ...save } = source
  return {
    manifest,
    organizationId: organization.id,
    workflow: { id: workflow.id, name: workflow.name },
    source: { id: source.id, name: source.name, save },
  }
}

/**
 * Applies the demo's manifest if the organization has never existed. What exists belongs to the user: nothing of it is
 * overwritten, but new secrets replace the demo's key. Resolves to whether the manifest was applied.
 */
export async function applyDemo(
  db: Database,
  { organizationId: id, manifest }: Demo,
  { areSecretsNew }: { areSecretsNew: boolean },
): Promise<boolean> {
  // The row of a deleted organization stays.
  const { rows } = await db.pool.query<{ name: string; suspended: boolean; isDeleted: boolean }>(
    `SELECT name, is_suspended AS suspended, deleted_at IS NOT NULL AS "isDeleted" FROM organizations WHERE id = $1`,
    [id],
  )
  const [existing] = rows
  if (!existing) {
    await applyManifests(db, [manifest])
    return true
  }
  const { name, suspended, isDeleted } = existing
  if (areSecretsNew && !isDeleted) {
    const { api_keys } = manifest
    // The key is the local stack's own: also one that a person has revoked is replaced.
    await applyManifests(db, [{ organization: { id, name, suspended }, api_keys }], { overwrite: 'all' })
  }
  return false
}

/**
 * Saves the webhook source if it has never been saved. Later, updates it to URL and secret of the demo's endpoint,
 * unless the user has set another endpoint.
 * @throws InternalCallError
 */
export async function syncEndpoint(
  db: Database,
  dispatcher: InternalClient,
  demo: Demo,
  { endpointUrl, areSecretsNew }: { endpointUrl: string; areSecretsNew: boolean },
): Promise<void> {
  const { organizationId, source } = demo
  const save = async (body: WebhookSourceIn): Promise<void> => {
    const params = { organization_id: organizationId, source_id: source.id }
    await dispatcher.call('saveWebhookSource', { params, query: { verify: 'if_changed' }, body })
  }
  const stored = await findWebhookSource(db, organizationId, source.id)
  if (!stored) {
    const { rowCount } = await db.pool.query(
      `SELECT FROM organizations WHERE id = $1 AND deleted_at IS NULL
         AND NOT EXISTS (SELECT FROM webhook_sources WHERE id = $2)`,
      [organizationId, source.id],
    )
    if (rowCount === 1) await save(source.save)
    return
  }
  if (!isDemoEndpoint(stored.endpoint_url)) return
  if (stored.endpoint_url === endpointUrl && !areSecretsNew) return
  const { name, description, example_request_body } = stored
  // Another port is another address, for which a stored secret has to be given again.
  const secret = stored.has_signing_secret ? { signing_secret: source.save.signing_secret } : {}
  await save({ name, description, endpoint_url: endpointUrl, ...secret, example_request_body })
}

/** Finds the demo's things by their ids. */
export async function findDemo(db: Database, { organizationId, workflow, source }: Demo) {
  const [organization] = await listOrganizations(db, { id: organizationId, limit: 1 })
  const stored = await findWebhookSource(db, organizationId, source.id)
  const { rowCount } = await db.pool.query(
    'SELECT FROM workflows WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL AND is_active',
    [organizationId, workflow.id],
  )
  const runs = await listRuns(db, organizationId, { workflowId: workflow.id, limit: 1 })
  return {
    /** Undefined when it was deleted. */
    organization,
    /** The name of the webhook source; undefined when it was deleted. */
    sourceName: stored?.name,
    /** Whether the workflow can be started. */
    canStart: organization !== undefined && !organization.isSuspended && rowCount === 1,
    hasRun: runs.length > 0,
  }
}

/** Makes a one-time link with which its reader becomes the owner of the organization; undefined if it has an owner. */
export async function makeSetupLink(
  db: Database,
  { id, name: organizationName }: OrganizationName,
  appUrl: string,
): Promise<{ url: string; organizationName: string } | undefined> {
  const { rowCount } = await db.pool.query(
    `SELECT FROM users WHERE organization_id = $1 AND role = 'owner' AND account_id IS NOT NULL LIMIT 1`,
    [id],
  )
  if (rowCount !== 0) return undefined
  return { url: `${appUrl}/setup#${await createSetupLink(db, id)}`, organizationName }
}

/** How the demo's run ended. */
export interface EndedRun {
  readonly status: 'succeeded' | 'failed'
  readonly error: string | null
}

const POLL_MS = 250

/** Resolves when the run has ended; undefined if the signal aborts first. A read that fails is repeated. */
export async function untilRunEnds(db: Database, runId: string, signal: AbortSignal): Promise<EndedRun | undefined> {
  while (!signal.aborted) {
    const run = await showRun(db, runId).catch(() => null)
    if (run?.status === 'succeeded' || run?.status === 'failed') return { status: run.status, error: run.error }
    await sleep(POLL_MS, undefined, { signal, ref: false }).catch(() => {})
  }
  return undefined
}

/** The demo's start request to the public API, and the response. */
export type DemoStart = Awaited<ReturnType<typeof startDemo>>

/** Of the demo's start, and so of its webhook. */
export const DEMO_REQUEST_ID = 'demo-start'
const CONTEXT = 'order_id: A-1001\ncustomer: Ada Lovelace\ntotal: 149.90\nexpress: yes'

/**
 * Starts the demo workflow through the public API. Its Idempotency-Key makes a second call return the same start.
 * @throws LocalStackError when the API refuses the start, for example because a person has revoked the key.
 */
export async function startDemo(gatewayUrl: string, apiKey: string, demo: Demo) {
  const url = startUrl(gatewayUrl, demo)
  const body = { context: CONTEXT }
  const sentAt = new Date()
  const response = await got.post(url, {
    json: body,
    headers: { authorization: `Bearer ${apiKey}`, 'idempotency-key': DEMO_REQUEST_ID, 'x-request-id': DEMO_REQUEST_ID },
    responseType: 'json',
    retry: { limit: 0 },
    timeout: { request: 10_000 },
    throwHttpErrors: false,
  })
  if (response.statusCode !== 202) {
    const { error } = response.body as Partial<ErrorResponse>
    throw new LocalStackError(`The public API answered ${response.statusCode}: ${error?.message ?? 'no message'}`)
  }
  return { url, body, sentAt, status: response.statusCode, response: response.body as WorkflowStartOut }
}

/**
 * Returns the command that starts the demo workflow again, with another order: curl, on Windows its like in PowerShell.
 */
export function startAgainCommand(
  gatewayUrl: string,
  apiKey: string,
  demo: Pick<Demo, 'workflow'>,
  platform = process.platform,
): string {
  const body = '{"context": "order_id: A-1002\\ncustomer: Grace Hopper\\ntotal: 12.50"}'
  if (platform === 'win32') {
    return [
      `Invoke-RestMethod -Method Post ${startUrl(gatewayUrl, demo)} \``,
      `  -Headers @{ Authorization = 'Bearer ${apiKey}' } -ContentType application/json \``,
      `  -Body '${body}'`,
    ].join('\n')
  }
  return [
    `curl -X POST ${startUrl(gatewayUrl, demo)} \\`,
    `  -H 'Authorization: Bearer ${apiKey}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${body}'`,
  ].join('\n')
}

function startUrl(gatewayUrl: string, demo: Pick<Demo, 'workflow'>): string {
  return `${gatewayUrl}/v1/workflows/${demo.workflow.id}/start`
}
