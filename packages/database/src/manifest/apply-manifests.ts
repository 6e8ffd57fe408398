import { type Manifest, type ManifestFieldError, trimWhiteSpace } from '@workflow-service/contract'
import { type Db, deriveId, foldCase, inTransaction, newId, readClock } from '../connection/index.ts'
import { operatorOf, readVersion, writeInstructions } from '../organizations/index.ts'
import { EMAIL_KEY, emailKeyOf } from '../people/index.ts'
import { wakeSpentSessions } from '../runs/index.ts'
import type { SecretBox } from '../sources/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  findByEmail,
  FOREIGN_ID,
  lowerCaseId,
  type Plan,
  type PlannedThing,
  reportRepeatedIds,
  toThing,
} from './apply-context.ts'
import { ManifestError, type ManifestViolation } from './manifest-errors.ts'
import { findPersonEdits, type PersonEdit, recordApplied } from './person-edits.ts'
import { type AppliedApiKey, planApiKeys } from './plan-api-keys.ts'
import { type PlannedLookup, type PlannedWebhookSource, planLookups, planWebhookSources } from './plan-sources.ts'
import { type AppliedWorkflow, planWorkflows, toMicros, toMoney } from './plan-workflows.ts'
import { writePlanned } from './write-rows.ts'

interface AppliedUser extends PlannedThing {
  readonly email: string
}

interface AppliedSession extends PlannedThing {
  readonly open: boolean
}

/** The result of applying a manifest. Its webhook sources and look-ups are planned here; the dispatcher saves them. */
export interface AppliedManifest {
  readonly organization: PlannedThing
  readonly users: readonly AppliedUser[]
  readonly apiKeys: readonly AppliedApiKey[]
  readonly webhookSources: readonly PlannedWebhookSource[]
  readonly lookups: readonly PlannedLookup[]
  readonly workflows: readonly AppliedWorkflow[]
  readonly sessions: readonly AppliedSession[]
  /** All of these, in this order. */
  readonly things: readonly PlannedThing[]
  /** What people changed in the application since the last apply, and this one overwrites. */
  readonly overwrites: readonly PersonEdit[]
}

/** Applying would overwrite what people changed in the application, and nothing was written. */
export class ManifestOverwriteError extends Error {
  override name = 'ManifestOverwriteError'
  /** The plan of every manifest. */
  readonly applied: readonly AppliedManifest[]
  readonly refused: readonly PersonEdit[]

  constructor(applied: readonly AppliedManifest[], refused: readonly PersonEdit[]) {
    const names = refused.map(({ kind, name, by, at }) => `${kind} ${name}: changed by ${by} at ${at.toISOString()}`)
    super(`The manifest would overwrite what people changed in the application.\n${names.join('\n')}`)
    this.applied = applied
    this.refused = refused
  }
}

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
 * for each thing that it creates or changes, except webhook sources and look-ups, and for each that a person changed to
 * the manifest's values.
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
    const now = await readClock(client)
    const applied: AppliedManifest[] = []
    const violations: ManifestViolation[] = []
    for (const [manifestIndex, manifest] of manifests.entries()) {
      const errors: ManifestFieldError[] = []
      const report: ApplyContext['report'] = (path, message) => errors.push({ path, message })
      const result = await applyManifest({ client, manifest, now, secrets, report }, errors)
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
  const webhookSources = await planWebhookSources(ctx)
  const lookups = await planLookups(ctx)
  const workflows = await planWorkflows(ctx, users.things, webhookSources.sourceIdByName)
  const sessions = await planSessions(ctx)
  if (errors.length > 0) return undefined
  const plans = [organization, users, apiKeys, webhookSources, lookups, workflows, sessions]
  const things = plans.flatMap((plan) => plan.things)
  const changed = things.filter(({ outcome }) => outcome !== 'unchanged')
  const edits = await findPersonEdits(ctx, things)
  for (const plan of plans) await plan.write?.()
  // Budgets may have been raised.
  if (changed.length > 0) await wakeSpentSessions({ pool: ctx.client }, ctx.organizationId)
  // The dispatcher saves the sources and look-ups that change; their events are recorded after that.
  const settled = plans.flatMap((plan) =>
    plan.things.filter(({ id, outcome }) => (outcome === 'unchanged' ? edits.has(id) : plan.write !== undefined)),
  )
  await recordApplied(ctx.client, ctx.organizationId, settled)
  return {
    organization: organization.things[0]!,
    users: users.things,
    apiKeys: apiKeys.things,
    webhookSources: webhookSources.things,
    lookups: lookups.things,
    workflows: workflows.things,
    sessions: sessions.things,
    things,
    overwrites: changed.flatMap(({ id }) => edits.get(id) ?? []),
  }
}

interface StoredOrganization {
  readonly name: string
  readonly is_suspended: boolean
  readonly month_budget: string | null
  readonly offered_models: string[]
  readonly isDeleted: boolean
  readonly isPurged: boolean
}

async function planOrganization(ctx: ApplyContext): Promise<Plan> {
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
     FROM organizations WHERE id = $1 FOR NO KEY UPDATE`,
    [id],
  )
  const [row] = found.rows
  if (row?.isDeleted && !row.isPurged) {
    ctx.report('organization', 'was deleted, and its data is still being deleted: try again later, or give another id')
  }
  const text = instructions === undefined ? undefined : trimWhiteSpace(instructions)
  const before = (await readVersion(client, id))?.text ?? ''
  // The row of a deleted organization stays, and is used again.
  const stored = row &&
    !row.isDeleted && {
      name: row.name,
      suspended: row.is_suspended,
      instructions: before,
      month_budget: toMoney(row.month_budget),
      offered_models: row.offered_models,
    }
  // In whole millionths, as it is stored.
  const monthBudget = budget === undefined ? undefined : toMoney(toMicros(budget))
  const wanted = { name, suspended, instructions: text, month_budget: monthBudget, offered_models: offered }
  const kept = absentFields(ctx.manifest.organization, 'instructions', 'month_budget', 'offered_models')
  const thing = toThing({ kind: 'organization', id, name, kept }, stored ? changesBetween(stored, wanted) : undefined)
  return {
    things: [thing],
    write: async () => {
      if (thing.outcome === 'unchanged') return
      await client.query(
        `INSERT INTO organizations (id, name, is_suspended, month_budget, offered_models, created_at, updated_at)
         VALUES ($1, $2, $3, $6, coalesce($7::text[], '{}'), $4, $4)
         ON CONFLICT (id) DO UPDATE SET name = $2, is_suspended = $3, updated_at = $4, deleted_at = NULL, purged_at = NULL,
           month_budget = CASE
             WHEN $5::boolean THEN $6 WHEN organizations.purged_at IS NULL THEN organizations.month_budget
           END,
           offered_models = coalesce($7::text[],
             CASE WHEN organizations.purged_at IS NULL THEN organizations.offered_models ELSE '{}' END),
           created_at = CASE WHEN organizations.purged_at IS NULL THEN organizations.created_at ELSE $4 END`,
        [id, name, suspended, now, budget !== undefined, toMicros(budget), offered],
      )
      if (text !== undefined && text !== before) await writeInstructions(client, text, operatorOf(id).principal)
    },
  }
}

/** What no manifest has of a user. */
const USER_FIELDS_KEPT = ['role', 'is_deactivated']

async function planUsers(ctx: ApplyContext): Promise<Plan<AppliedUser>> {
  const { client, organizationId } = ctx
  const entries = ctx.manifest.users ?? []
  const derivedIds = entries.map(({ email }) => deriveId('user', organizationId, email))
  const { rows: known } = await client.query<{ id: string; email: string; first_name: string; last_name: string }>(
    `SELECT id, email, first_name, last_name FROM users
     WHERE organization_id = $1 AND (${EMAIL_KEY} = ANY ($2::text[]) OR id = ANY ($3::uuid[])) ORDER BY is_duplicate, id`,
    [organizationId, entries.map(({ email }) => foldCase(email)), derivedIds],
  )
  const find = findByEmail(known)
  const takenIds = new Set(known.map(({ id }) => id))
  const planned = entries.map(({ email, first_name = '', last_name = '' }, index) => {
    const wanted = { email, first_name, last_name }
    const stored = find(email)
    const derivedId = derivedIds[index]!
    // The person of this id may have got another email address.
    const id = stored?.id ?? (takenIds.has(derivedId) ? newId() : derivedId)
    const thing = toThing(
      { kind: 'user', id, name: email, kept: USER_FIELDS_KEPT },
      stored && changesBetween(stored, { id, ...wanted }),
    )
    const row = { id, organization_id: organizationId, email_key: emailKeyOf(email), ...wanted }
    return { thing: { ...thing, email }, row }
  })
  const things = planned.map(({ thing }) => thing)
  return {
    things,
    write: async () => {
      if (things.every(({ outcome }) => outcome === 'unchanged')) return
      // Part of the version of every workflow document of the organization: see workflows.ts.
      await client.query('UPDATE organizations SET users_version = DEFAULT WHERE id = $1', [organizationId])
      await writePlanned(client, 'users', planned)
    },
  }
}

async function planSessions(ctx: ApplyContext): Promise<Plan<AppliedSession>> {
  const { client, organizationId, now } = ctx
  const wanted = (ctx.manifest.sessions ?? []).map(({ id, open }, index) => ({
    id: lowerCaseId(id) ?? deriveId('session', organizationId, index),
    open,
    path: `sessions[${index}]`,
  }))
  reportRepeatedIds(ctx, wanted)
  const found = await client.query<{ id: string; organization_id: string; is_open: boolean }>(
    'SELECT id, organization_id, is_open FROM sessions WHERE id = ANY($1)',
    [wanted.map(({ id }) => id)],
  )
  const stored = new Map(found.rows.map((row) => [row.id, row]))
  const planned = wanted.map(({ id, open, path }) => {
    const row = stored.get(id)
    if (row && row.organization_id !== organizationId) ctx.report(`${path}.id`, FOREIGN_ID)
    const isOpen = open ?? row?.is_open ?? true
    const kept = open === undefined ? ['opened', 'closed'] : []
    const changes = row && changesBetween({ open: row.is_open }, { open: isOpen })
    const thing = { ...toThing({ kind: 'session', id, name: id, kept }, changes), open: isOpen }
    return { thing, row: { id, organization_id: organizationId, is_open: isOpen, closed_at: isOpen ? null : now } }
  })
  return {
    things: planned.map(({ thing }) => thing),
    write: () => writePlanned(client, 'sessions', planned),
  }
}
