import type { Manifest, ManifestFieldError } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import type { Database } from '../client.ts'
import { deriveId } from '../ids.ts'
import { inTransaction } from '../in-transaction.ts'
import {
  type Application,
  FOREIGN_ID,
  lower,
  type ManifestOutcome,
  outcomeOf,
  type Plan,
  rowsThatAre,
} from './application.ts'
import { insertRows, updateRows } from './bulk-rows.ts'
import { ManifestError } from './manifest-errors.ts'
import { type AppliedApiKey, planApiKeys } from './plan-api-keys.ts'
import { type PlannedWebhookSource, planWebhookSources } from './plan-webhook-sources.ts'
import { type AppliedWorkflow, planWorkflows } from './plan-workflows.ts'

/** What a manifest came to. The webhook sources are planned, not saved: that is the dispatcher's. */
export interface AppliedManifest {
  organization: { id: string; name: string; outcome: ManifestOutcome }
  users: { email: string; outcome: ManifestOutcome }[]
  apiKeys: AppliedApiKey[]
  webhookSources: PlannedWebhookSource[]
  workflows: AppliedWorkflow[]
  sessions: { id: string; open: boolean; outcome: ManifestOutcome }[]
}

/**
 * Makes the organizations as the manifests say, all of them in one transaction: what a manifest does not name stays as it
 * is, except inside a workflow, whose users, triggers and files become exactly those of the manifest. What is equal
 * already is not written. Waits for another application that is under way.
 * @throws ManifestError when what is stored does not allow one of them; nothing at all is written then.
 */
export async function applyManifests(
  db: Pick<Database, 'pool'>,
  manifests: readonly Manifest[],
): Promise<AppliedManifest[]> {
  return await inTransaction(db, async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('workflow-service manifest', 0))`)
    const clock = await client.query<{ now: Date }>('SELECT now()::timestamptz(3) AS now')
    const applied: AppliedManifest[] = []
    for (const [index, manifest] of manifests.entries()) {
      applied.push(await applyManifest(client, manifest, clock.rows[0]!.now, index))
    }
    return applied
  })
}

async function applyManifest(
  client: PoolClient,
  manifest: Manifest,
  now: Date,
  manifestIndex: number,
): Promise<AppliedManifest> {
  const faults: ManifestFieldError[] = []
  const app: Application = {
    client,
    manifest,
    now,
    organizationId: lower(manifest.organization.id) ?? deriveId('organization', manifest.organization.name),
    report: (path, message) => faults.push({ path, message }),
  }
  const organization = await planOrganization(app)
  const users = await planUsers(app)
  const apiKeys = await planApiKeys(app)
  const { webhookSources, sourceIdByName } = await planWebhookSources(app)
  const workflows = await planWorkflows(app, sourceIdByName)
  const sessions = await planSessions(app)
  if (faults.length > 0) throw new ManifestError(faults, manifestIndex)
  for (const plan of [organization, users, apiKeys, workflows, sessions]) await plan.write()
  return {
    organization: organization.result,
    users: users.result,
    apiKeys: apiKeys.result,
    webhookSources,
    workflows: workflows.result,
    sessions: sessions.result,
  }
}

async function planOrganization(app: Application): Promise<Plan<AppliedManifest['organization']>> {
  const { client, organizationId: id, now } = app
  const { name, suspended = false } = app.manifest.organization
  const found = await client.query<{ name: string; is_suspended: boolean }>(
    'SELECT name, is_suspended FROM organizations WHERE id = $1 FOR UPDATE',
    [id],
  )
  const outcome = outcomeOf(found.rows[0], { name, is_suspended: suspended })
  return {
    result: { id, name, outcome },
    write: async () => {
      if (outcome === 'unchanged') return
      await client.query(
        `INSERT INTO organizations (id, name, is_suspended, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
         ON CONFLICT (id) DO UPDATE SET name = $2, is_suspended = $3, updated_at = $4`,
        [id, name, suspended, now],
      )
    },
  }
}

async function planUsers(app: Application): Promise<Plan<AppliedManifest['users']>> {
  const { client, organizationId } = app
  const wanted = (app.manifest.users ?? []).map(({ email, first_name = '', last_name = '' }) => ({
    email,
    first_name,
    last_name,
  }))
  const found = await client.query<{ id: string; email: string; first_name: string; last_name: string }>(
    'SELECT id, email, first_name, last_name FROM users WHERE organization_id = $1 AND email = ANY($2)',
    [organizationId, wanted.map((user) => user.email)],
  )
  const stored = new Map(found.rows.map(({ id, ...user }) => [user.email, { id, user }]))
  const rows = wanted.map((user) => ({
    id: stored.get(user.email)?.id ?? deriveId('user', organizationId, user.email),
    organization_id: organizationId,
    ...user,
  }))
  const outcomes = wanted.map((user) => outcomeOf(stored.get(user.email)?.user, user))
  return {
    result: wanted.map(({ email }, index) => ({ email, outcome: outcomes[index]! })),
    write: async () => {
      if (outcomes.every((outcome) => outcome === 'unchanged')) return
      await client.query('UPDATE organizations SET users_version = DEFAULT WHERE id = $1', [organizationId])
      await insertRows(client, 'users', USER_COLUMNS, rowsThatAre('created', rows, outcomes))
      await updateRows(client, 'users', USER_COLUMNS, rowsThatAre('changed', rows, outcomes))
    },
  }
}

const USER_COLUMNS = { id: 'uuid', organization_id: 'uuid', email: 'text', first_name: 'text', last_name: 'text' }

async function planSessions(app: Application): Promise<Plan<AppliedManifest['sessions']>> {
  const { client, organizationId, now } = app
  const wanted = (app.manifest.sessions ?? []).map(({ id, open }, place) => ({
    id: lower(id) ?? deriveId('session', organizationId, place),
    open,
  }))
  const found = await client.query<{ id: string; organization_id: string; is_open: boolean }>(
    'SELECT id, organization_id, is_open FROM sessions WHERE id = ANY($1)',
    [wanted.map(({ id }) => id)],
  )
  const stored = new Map(found.rows.map((row) => [row.id, row]))
  const result = wanted.map(({ id, open }, index) => {
    const row = stored.get(id)
    if (row && row.organization_id !== organizationId) app.report(`sessions[${index}].id`, FOREIGN_ID)
    const isOpen = open ?? row?.is_open ?? true
    return { id, open: isOpen, outcome: outcomeOf(row?.is_open, isOpen) }
  })
  return {
    result,
    write: async () => {
      for (const { id, open } of result.filter(({ outcome }) => outcome !== 'unchanged')) {
        await client.query(
          `INSERT INTO sessions (id, organization_id, is_open, created_at, closed_at) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (id) DO UPDATE SET is_open = $3, closed_at = $5`,
          [id, organizationId, open, now, open ? null : now],
        )
      }
    },
  }
}
