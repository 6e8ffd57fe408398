import type { Manifest, ManifestFieldError } from '@workflow-service/contract'
import { type Db, deriveId, foldCase, inTransaction } from '../connection/index.ts'
import { operatorOf, readNewest, writeInstructions } from '../organizations/index.ts'
import { EMAIL_KEY, emailKeyOf } from '../people/index.ts'
import { wakeSpentSessions } from '../runs/index.ts'
import type { SecretBox } from '../sources/index.ts'
import type { AppliedManifest } from './applied-manifest.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  FOREIGN_ID,
  lowerCaseId,
  omit,
  outcomeOf,
  type Plan,
  type PlannedThing,
  rowsWithOutcome,
} from './apply-context.ts'
import { findByEmail } from './find-by-email.ts'
import { ManifestError, type ManifestViolation } from './manifest-errors.ts'
import { findPersonEdits, ManifestOverwriteError, recordApplied } from './person-edits.ts'
import { planApiKeys } from './plan-api-keys.ts'
import { planLookups } from './plan-lookups.ts'
import { planWebhookSources } from './plan-webhook-sources.ts'
import { planWorkflows, toMicros, toMoney } from './plan-workflows.ts'
import { insertRows, updateRows } from './write-rows.ts'

export interface ApplyOptions {
  /** Plans only: writes nothing, and refuses no overwrite. */
  readonly isDryRun?: boolean
  /**
   * What people changed and may be overwritten: all of it, or the changes with these audit events. Default: nothing.
   */
  readonly overwrite?: 'all' | ReadonlySet<string>
  /** Compares the given signing secrets with the stored ones; without it, every given one counts as a change. */
  readonly secrets?: SecretBox | undefined
}

/**
 * Applies manifests in one transaction (contract README, "Manifest"): creates and changes what they name, and keeps
 * what they do not name, except inside a workflow, whose users, triggers and files become exactly those of the
 * manifest. Equal rows are not written. Concurrent calls wait for each other. Records an audit event `manifest.applied`
 * for each thing that it creates or changes, except webhook sources, and for each that a person changed to the
 * manifest's values.
 * @throws ManifestError when a manifest conflicts with stored data; then nothing is written.
 * @throws ManifestOverwriteError when it would overwrite what a person changed; then nothing is written.
 */
export async function applyManifests(
  db: Db,
  manifests: readonly Manifest[],
  { isDryRun = false, overwrite = new Set(), secrets }: ApplyOptions = {},
): Promise<AppliedManifest[]> {
  return await inTransaction(db, async (client) => {
    await client.query('SAVEPOINT nothing_applied')
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('workflow-service manifest', 0))`)
    const clock = await client.query<{ now: Date }>('SELECT now()::timestamptz(3) AS now')
    const applied: AppliedManifest[] = []
    const violations: ManifestViolation[] = []
    for (const [manifestIndex, manifest] of manifests.entries()) {
      const errors: ManifestFieldError[] = []
      const report: ApplyContext['report'] = (path, message) => errors.push({ path, message })
      const result = await applyManifest({ client, manifest, now: clock.rows[0]!.now, secrets, report }, errors)
      violations.push(...errors.map((error) => ({ ...error, manifestIndex })))
      if (result) applied.push(result)
    }
    if (violations.length > 0) throw new ManifestError(violations)
    // A dry run writes and rolls back: several manifests of one organization depend on each other.
    if (isDryRun) await client.query('ROLLBACK TO SAVEPOINT nothing_applied')
    else if (overwrite !== 'all') {
      const refused = applied.flatMap(({ overwrites }) => overwrites.filter(({ eventId }) => !overwrite.has(eventId)))
      if (refused.length > 0) throw new ManifestOverwriteError(applied, refused)
    }
    return applied
  })
}

/** Applies one manifest. Writes nothing, and resolves to undefined, if it reports errors. */
async function applyManifest(
  given: Omit<ApplyContext, 'organizationId'>,
  errors: readonly ManifestFieldError[],
): Promise<AppliedManifest | undefined> {
  const named = given.manifest.organization
  const organizationId = lowerCaseId(named.id) ?? deriveId('organization', named.name)
  const ctx: ApplyContext = { ...given, organizationId }
  const organization = await planOrganization(ctx)
  const users = await planUsers(ctx)
  const apiKeys = await planApiKeys(ctx)
  const { webhookSources, things: sourceThings, sourceIdByName } = await planWebhookSources(ctx)
  const { lookups, things: lookupThings } = await planLookups(ctx)
  const savedThings = [...sourceThings, ...lookupThings]
  const workflows = await planWorkflows(ctx, sourceIdByName)
  const sessions = await planSessions(ctx)
  if (errors.length > 0) return undefined
  const plans = [organization, users, apiKeys, workflows, sessions]
  const things = plans.flatMap((plan) => plan.things)
  const edits = await findPersonEdits(ctx, [...things, ...savedThings])
  for (const plan of plans) await plan.write()
  // Budgets may have been raised.
  if (things.some(isChanged)) await wakeSpentSessions({ pool: ctx.client }, ctx.organizationId)
  const isEdited = ({ id }: PlannedThing) => edits.has(id)
  // The dispatcher saves the sources and look-ups that change; their events are recorded after that.
  const settled = [
    ...things.filter((thing) => isChanged(thing) || isEdited(thing)),
    ...savedThings.filter((thing) => !isChanged(thing) && isEdited(thing)),
  ]
  await recordApplied(ctx.client, ctx.organizationId, settled)
  return {
    organization: organization.result,
    users: users.result,
    apiKeys: apiKeys.result,
    webhookSources,
    lookups,
    workflows: workflows.result,
    sessions: sessions.result,
    overwrites: [...things, ...savedThings].filter(isChanged).flatMap(({ id }) => edits.get(id) ?? []),
  }
}

function isChanged({ outcome }: PlannedThing): boolean {
  return outcome !== 'unchanged'
}

interface StoredOrganization {
  readonly name: string
  readonly is_suspended: boolean
  readonly month_budget: string | null
  readonly offered_models: string[]
  readonly isDeleted: boolean
  readonly isPurged: boolean
}

async function planOrganization(ctx: ApplyContext): Promise<Plan<AppliedManifest['organization']>> {
  const { client, organizationId: id, now } = ctx
  const {
    name,
    suspended = false,
    instructions,
    month_budget: budget,
    offered_models: offered,
  } = ctx.manifest.organization
  const found = await client.query<StoredOrganization>(
    `SELECT name, is_suspended, month_budget, offered_models, deleted_at IS NOT NULL AS "isDeleted", purged_at IS NOT NULL AS "isPurged"
     FROM organizations WHERE id = $1 FOR UPDATE`,
    [id],
  )
  const [row] = found.rows
  if (row?.isDeleted && !row.isPurged) {
    ctx.report('organization', 'was deleted, and its data is still being deleted: try again later, or give another id')
  }
  // The row of a deleted organization stays, and is used again.
  const isStored = row !== undefined && !row.isDeleted
  const before = instructions === undefined ? undefined : ((await readNewest(client, id))?.text ?? '')
  const stored = isStored
    ? {
        name: row.name,
        suspended: row.is_suspended,
        instructions: before,
        month_budget: budget === undefined ? undefined : toMoney(row.month_budget),
        offered_models: offered && row.offered_models,
      }
    : undefined
  const text = instructions?.trim()
  const wanted = { name, suspended, instructions: text, month_budget: budget, offered_models: offered }
  const outcome = outcomeOf(stored, wanted)
  const changes = changesBetween(stored, wanted)
  return {
    result: { id, name, outcome, changes },
    things: [
      {
        kind: 'organization',
        id,
        name,
        outcome,
        changes,
        kept: absentFields(ctx.manifest.organization, 'instructions', 'month_budget', 'offered_models'),
      },
    ],
    write: async () => {
      if (outcome === 'unchanged') return
      await client.query(
        `INSERT INTO organizations (id, name, is_suspended, month_budget, offered_models, created_at, updated_at)
         VALUES ($1, $2, $3, $6, coalesce($7::text[], '{}'), $4, $4)
         ON CONFLICT (id) DO UPDATE SET name = $2, is_suspended = $3, updated_at = $4, deleted_at = NULL, purged_at = NULL,
           month_budget = CASE WHEN $5::boolean THEN $6 ELSE organizations.month_budget END,
           offered_models = coalesce($7::text[], organizations.offered_models)`,
        [id, name, suspended, now, budget !== undefined, toMicros(budget), offered],
      )
      if (text !== undefined && text !== before) await writeInstructions(client, text, operatorOf(id).principal)
    },
  }
}

async function planUsers(ctx: ApplyContext): Promise<Plan<AppliedManifest['users']>> {
  const { client, organizationId } = ctx
  const wanted = (ctx.manifest.users ?? []).map(({ email, first_name = '', last_name = '' }) => ({
    email,
    first_name,
    last_name,
  }))
  const { rows: known } = await client.query<{ id: string; email: string; first_name: string; last_name: string }>(
    `SELECT id, email, first_name, last_name FROM users
     WHERE organization_id = $1 AND ${EMAIL_KEY} = ANY ($2::text[]) ORDER BY is_duplicate, id`,
    [organizationId, wanted.map(({ email }) => foldCase(email))],
  )
  const find = findByEmail(known)
  const stored = wanted.map(({ email }) => find(email))
  const rows = wanted.map((user, index) => ({
    id: stored[index]?.id ?? deriveId('user', organizationId, user.email),
    organization_id: organizationId,
    email_key: emailKeyOf(user.email),
    ...user,
  }))
  const before = stored.map((user) => user && omit(user, 'id'))
  const outcomes = wanted.map((user, index) => outcomeOf(before[index], user))
  const things = rows.map(({ id, email }, index): PlannedThing => {
    const changes = changesBetween(before[index], wanted[index]!)
    return { kind: 'user', id, name: email, outcome: outcomes[index]!, changes }
  })
  return {
    result: things.map(({ id, name: email, outcome, changes }) => ({ id, email, outcome, changes })),
    things,
    write: async () => {
      if (outcomes.every((outcome) => outcome === 'unchanged')) return
      // Part of the version of every workflow document of the organization: see workflows.ts.
      await client.query('UPDATE organizations SET users_version = DEFAULT WHERE id = $1', [organizationId])
      await insertRows(client, 'users', rowsWithOutcome('created', rows, outcomes))
      // The address may differ in case.
      await updateRows(client, 'users', rowsWithOutcome('changed', rows, outcomes))
    },
  }
}

async function planSessions(ctx: ApplyContext): Promise<Plan<AppliedManifest['sessions']>> {
  const { client, organizationId, now } = ctx
  const wanted = (ctx.manifest.sessions ?? []).map(({ id, open }, index) => ({
    id: lowerCaseId(id) ?? deriveId('session', organizationId, index),
    open,
  }))
  const found = await client.query<{ id: string; organization_id: string; is_open: boolean }>(
    'SELECT id, organization_id, is_open FROM sessions WHERE id = ANY($1)',
    [wanted.map(({ id }) => id)],
  )
  const stored = new Map(found.rows.map((row) => [row.id, row]))
  const result = wanted.map(({ id, open }, index) => {
    const row = stored.get(id)
    if (row && row.organization_id !== organizationId) ctx.report(`sessions[${index}].id`, FOREIGN_ID)
    const isOpen = open ?? row?.is_open ?? true
    const changes = changesBetween(row && { open: row.is_open }, { open: isOpen })
    return { id, open: isOpen, outcome: outcomeOf(row?.is_open, isOpen), changes }
  })
  return {
    result,
    things: result.map(({ id, outcome, changes }, index) => {
      const kept = wanted[index]?.open === undefined ? ['opened', 'closed'] : []
      return { kind: 'session', id, name: id, outcome, changes, kept }
    }),
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
