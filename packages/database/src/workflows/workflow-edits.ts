import { randomUUID } from 'node:crypto'
import type {
  Role,
  SaveAutoRunIn,
  SaveWorkflowAgentIn,
  SaveWorkflowIn,
  WorkflowDetailOut,
} from '@workflow-service/contract'
import {
  databaseNull,
  inPrismaTransaction,
  type PrismaDb,
  readClock,
  type Transaction,
  versionOf,
  workflowSearchText,
} from '../connection/index.ts'
import type { Prisma } from '../generated/client.ts'
import {
  assertQuota,
  type AuditAction,
  type AuditChange,
  type AuditPrincipal,
  changedFields,
  hasQueueOf,
  VERY_LONG_QUEUE,
  isVisible,
  type LimitedByQuotas,
  recordAuditEvent,
  viewerOf,
  unfinishedStarts,
} from '../organizations/index.ts'
import { scheduleAutoRun, type StoredSchedule } from './auto-run-schedule.ts'
import { countFileBytes } from './files.ts'
import { listModels } from './models.ts'
import { agentVersion, readWorkflowDetail, scheduleVersion, usersVersion } from './workflow-detail.ts'
import { recordVersions } from './workflow-versions.ts'

/** A person's change of a workflow. */
export interface WorkflowEdit extends LimitedByQuotas {
  readonly workflowId: string
  readonly principal: EditingPerson
  readonly requestId: string
}

export interface EditingPerson extends AuditPrincipal {
  readonly userId: string
  readonly role: Role
}

type WorkflowValues = Pick<WorkflowDetailOut, 'name' | 'description' | 'scope'>

type EditProblem =
  /** The person cannot see the workflow, or it does not have the trigger or file. */
  | 'not_found'
  /** Another save came first. `current` is what the operation that reads it answers; null when it was deleted. */
  | 'changed_meanwhile'
  | 'id_taken'
  /** A run has not ended. */
  | 'workflow_busy'
  /** The person would not see the workflow any more. */
  | 'hidden_from_editor'
  /** The user of this index is none of the organization. */
  | 'unknown_user'
  /** The service has no such model for the organization, or does not offer it to members. */
  | 'model_not_offered'
  /** Only admins change budgets. */
  | 'budget_of_admins'
  /** Another file of the folder has the name. */
  | 'file_name_taken'
  /** `message` says why the value of the field `what` cannot be used. */
  | 'invalid_value'
  /** There may be no more; `message` says of what. */
  | 'limit_reached'

/** A change is refused, and nothing of it was written. */
export class EditRefused extends Error {
  override name = 'EditRefused'
  readonly problem: EditProblem
  readonly what: string
  readonly current: object | null
  readonly index: number

  constructor(
    problem: EditProblem,
    options: { what?: string; current?: object | null; index?: number; message?: string } = {},
  ) {
    super(options.message ?? problem)
    this.problem = problem
    this.what = options.what ?? 'Workflow'
    this.current = options.current ?? null
    this.index = options.index ?? 0
  }
}

/**
 * An edit as the audit log records it. The target is the workflow also for its parts, so that its log has all its
 * changes.
 */
export interface AuditedEdit {
  readonly action: AuditAction
  readonly changes: readonly AuditChange[]
}

/** An edit of a workflow's document. */
interface DocumentEdit extends AuditedEdit {
  /** What changes in the row of the workflow itself. */
  readonly data?: Prisma.WorkflowUpdateInput
}

/**
 * Edits a workflow in one transaction, under the lock of its row: of two saves of the same values, the second sees the
 * first one's. Writes a new version of the document and an audit event, unless `work` resolves to undefined because
 * there is nothing to change.
 * @throws EditRefused
 */
export async function editWorkflow(
  db: PrismaDb,
  edit: WorkflowEdit,
  work: (tx: Transaction, before: WorkflowDetailOut) => Promise<DocumentEdit | undefined>,
): Promise<WorkflowDetailOut> {
  return await inPrismaTransaction(db, async (tx) => {
    await lockWorkflow(tx, edit, 'FOR NO KEY UPDATE')
    const before = await readDetail(tx, edit)
    await recordVersions(tx, [before.id], null)
    const edited = await work(tx, before)
    if (!edited) return before
    const { data, ...audited } = edited
    await tx.prisma.workflow.update({
      where: { id: before.id },
      data: { ...data, version: randomUUID(), updatedAt: await readClock(tx) },
    })
    await recordVersions(tx, [before.id], edit.principal.name)
    await audit(tx, edit, before.name, audited)
    // Also when the person has just lost access.
    return await readDetail(tx, edit, { organizationId: edit.principal.organizationId, memberId: null })
  })
}

/**
 * Changes what belongs to a workflow without being a part of it, under the lock of its row, with an audit event unless
 * `work` resolves to undefined because there is nothing to change.
 * @throws EditRefused
 */
export async function editBesideWorkflow(
  db: PrismaDb,
  edit: WorkflowEdit,
  work: (tx: Transaction) => Promise<AuditedEdit | undefined>,
): Promise<void> {
  await inPrismaTransaction(db, async (tx) => {
    const { name } = await lockWorkflow(tx, edit, 'FOR NO KEY UPDATE')
    const audited = await work(tx)
    if (audited) await audit(tx, edit, name, audited)
  })
}

async function lockWorkflow(
  tx: Transaction,
  { workflowId, principal }: WorkflowEdit,
  lock: 'FOR NO KEY UPDATE' | 'FOR UPDATE',
): Promise<WorkflowValues> {
  const read = async (clause: string): Promise<WorkflowValues> => {
    const { rows } = await tx.query<WorkflowValues>(
      `SELECT name, description, scope FROM workflows WHERE organization_id = $1 AND id = $2 AND ${isVisible('workflows', '$3')} ${clause}`,
      [principal.organizationId, workflowId, viewerOf(principal).memberId],
    )
    if (!rows[0]) throw new EditRefused('not_found')
    return rows[0]
  }
  await read(lock)
  // Again: a statement that has waited for the lock sees the people who had access before.
  return await read('')
}

async function readDetail(tx: Transaction, { workflowId, principal }: WorkflowEdit, viewer = viewerOf(principal)) {
  const detail = await readWorkflowDetail({ pool: tx }, viewer, workflowId)
  if (!detail) throw new EditRefused('not_found')
  return detail
}

async function audit(tx: Transaction, edit: WorkflowEdit, name: string, audited: AuditedEdit): Promise<void> {
  await recordAuditEvent(tx, { ...edit, ...audited, target: { kind: 'workflow', id: edit.workflowId, name } })
}

/**
 * Refuses to overwrite what another person saved.
 * @param current What is saved now, for the person.
 * @throws EditRefused `changed_meanwhile` if the saved values are not those that were edited.
 */
export function assertUnchangedSince(edited: string | null, stored: string | null, current: object | null): void {
  if (stored !== edited) throw new EditRefused('changed_meanwhile', { current })
}

/** Creates an inactive workflow with the person as its user. Repeated with the same values, it answers the same. */
export async function createWorkflow(
  db: PrismaDb,
  edit: WorkflowEdit,
  values: WorkflowValues,
): Promise<WorkflowDetailOut> {
  return await inPrismaTransaction(db, async (tx) => await insertWorkflow(tx, edit, values))
}

/**
 * Copies a workflow with its triggers, files, people, model and budgets; the copy is inactive, without a schedule, and
 * has the person as a user too. Repeated with the same values, it answers the same.
 */
export async function duplicateWorkflow(
  db: PrismaDb,
  edit: WorkflowEdit,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<WorkflowDetailOut> {
  return await inPrismaTransaction(db, async (tx) => {
    const { description, scope } = await lockWorkflow(tx, edit, 'FOR NO KEY UPDATE')
    return await insertWorkflow(tx, { ...edit, workflowId: id }, { name, description, scope }, edit.workflowId)
  })
}

const COPY_PARTS = `
  WITH copied AS MATERIALIZED (
    SELECT id AS old_id, gen_random_uuid() AS new_id FROM triggers WHERE workflow_id = $1
  ),
  new_triggers AS (
    INSERT INTO triggers (id, workflow_id, name, is_active, source_slug, source_name, filters, input_message, created_at)
    SELECT new_id, $2, name, is_active, source_slug, source_name, filters, input_message, created_at
    FROM copied JOIN triggers ON triggers.id = copied.old_id
  ),
  new_events AS (
    INSERT INTO trigger_events (trigger_id, position, slug, name)
    SELECT new_id, position, slug, name FROM copied JOIN trigger_events ON trigger_events.trigger_id = copied.old_id
  ),
  new_sources AS (
    INSERT INTO subagent_sources (trigger_id, position, source_id, name, type)
    SELECT new_id, position, source_id, name, type
    FROM copied JOIN subagent_sources ON subagent_sources.trigger_id = copied.old_id
  ),
  new_users AS (
    INSERT INTO workflow_users (organization_id, workflow_id, user_id)
    SELECT $3, $2, user_id FROM workflow_users WHERE workflow_id = $1
    ON CONFLICT DO NOTHING
  ),
  new_agent AS (
    UPDATE workflows AS copy SET model = original.model, run_budget = original.run_budget,
      day_budget = original.day_budget, when_spent = original.when_spent
    FROM workflows AS original WHERE original.id = $1 AND copy.id = $2
  )
  INSERT INTO files (id, workflow_id, name, path, content)
  SELECT gen_random_uuid(), $2, name, path, content FROM files WHERE workflow_id = $1`

/** @throws EditRefused `id_taken` if the id is that of a workflow with other values. */
async function insertWorkflow(
  tx: Transaction,
  edit: WorkflowEdit,
  { name, description, scope }: WorkflowValues,
  copyOf?: string,
): Promise<WorkflowDetailOut> {
  const { workflowId, principal } = edit
  const { organizationId, userId } = principal
  const values = { name, description, scope }
  const { count } = await tx.prisma.workflow.createMany({
    data: {
      id: workflowId,
      organizationId,
      ...values,
      searchText: workflowSearchText(name, description),
      isActive: false,
    },
    skipDuplicates: true,
  })
  if (count === 1) {
    await tx.prisma.workflowUser.create({ data: { organizationId, workflowId, userId } })
    if (copyOf) await tx.query(COPY_PARTS, [copyOf, workflowId, organizationId])
    await assertQuota(tx, edit, 'workflows')
    if ((await countFileBytes(tx, workflowId)) > 0) await assertQuota(tx, edit, 'file_bytes')
    await recordVersions(tx, [workflowId], principal.name)
    const changes = changedFields({}, copyOf ? { ...values, copy_of: copyOf } : values)
    await audit(tx, edit, name, { action: 'workflow.created', changes })
  }
  const found = await readWorkflowDetail({ pool: tx }, viewerOf(principal), workflowId)
  if (found?.version === versionOf([name, description, scope])) return found
  throw new EditRefused('id_taken')
}

export async function saveWorkflow(
  db: PrismaDb,
  edit: WorkflowEdit,
  { version, ...values }: SaveWorkflowIn,
): Promise<WorkflowDetailOut> {
  const { name, description, scope } = values
  return await editWorkflow(db, edit, async (_tx, before) => {
    const wanted = versionOf([name, description, scope])
    if (before.version === wanted) return undefined
    assertUnchangedSince(version, before.version, before)
    const { memberId } = viewerOf(edit.principal)
    if (scope !== 'company_wide' && memberId !== null && !before.users.some(({ id }) => id === memberId)) {
      throw new EditRefused('hidden_from_editor')
    }
    const data = { ...values, searchText: workflowSearchText(name, description) }
    return { action: 'workflow.saved', changes: changedFields<object>(before, values), data }
  })
}

export async function setWorkflowActive(
  db: PrismaDb,
  edit: WorkflowEdit,
  isActive: boolean,
): Promise<WorkflowDetailOut> {
  return await editWorkflow(db, edit, async (_tx, before) => {
    if (before.is_active === isActive) return undefined
    const changes = changedFields<object>(before, { is_active: isActive })
    return { action: isActive ? 'workflow.activated' : 'workflow.deactivated', changes, data: { isActive } }
  })
}

/** Saves the schedule. Without a timing, it counts from now when it is switched on or gets another frequency. */
export async function saveAutoRun(
  db: PrismaDb,
  edit: WorkflowEdit,
  { version, timing = null, ...values }: SaveAutoRunIn,
): Promise<WorkflowDetailOut> {
  const schedule = { ...values, timing }
  const { enabled, frequency } = schedule
  return await editWorkflow(db, edit, async (tx, before) => {
    const { auto_run: stored } = before
    if (stored.version === scheduleVersion(schedule)) return undefined
    assertUnchangedSince(version, stored.version, before)
    const { rows } = await tx.query<StoredSchedule & { now: Date }>(
      `SELECT auto_run_anchor_at AS "anchorAt", auto_run_next_at AS "nextAt", now()::timestamptz(3) AS now
       FROM workflows WHERE id = $1`,
      [before.id],
    )
    const { now, ...times } = rows[0]!
    const { anchorAt, nextAt } = scheduleAutoRun(schedule, { ...stored, ...times }, now)
    const data = {
      autoRunEnabled: enabled,
      autoRunFrequency: frequency,
      autoRunAnchorAt: anchorAt,
      autoRunNextAt: nextAt,
      autoRunTiming: timing ?? databaseNull(),
    }
    return { action: 'auto_run.saved', changes: changedFields<object>(stored, schedule), data }
  })
}

/** Saves model and budgets. A member chooses among the models that admins offer. */
export async function saveWorkflowAgent(
  db: PrismaDb,
  edit: WorkflowEdit,
  { version, ...values }: SaveWorkflowAgentIn,
): Promise<WorkflowDetailOut> {
  const { model, run_budget: runBudget, day_budget: dayBudget, when_spent: whenSpent } = values
  return await editWorkflow(db, edit, async (tx, before) => {
    const { version: stored, ...old } = before.agent
    if (stored === agentVersion(values)) return undefined
    assertUnchangedSince(version, stored, before)
    const { role } = edit.principal
    const isBudgetChanged = agentVersion({ ...values, model: null }) !== agentVersion({ ...old, model: null })
    if (role === 'member' && isBudgetChanged) throw new EditRefused('budget_of_admins')
    if (model !== null && model !== old.model) await assertOffered(tx, edit, model)
    const data = { model, runBudget, dayBudget, whenSpent }
    return { action: 'workflow_agent.saved', changes: changedFields<object>(old, values), data }
  })
}

/** @throws EditRefused unless the person may choose the model. */
export async function assertOffered(tx: Transaction, { principal }: WorkflowEdit, model: string): Promise<void> {
  const offered = await listModels({ pool: tx }, principal.organizationId)
  const chosen = offered.find(({ name }) => name === model)
  // Every runner has the built-in agent, also before one has recorded what it offers.
  const isOffered = chosen ? principal.role !== 'member' || chosen.is_offered : model === 'builtin'
  if (!isOffered) throw new EditRefused('model_not_offered')
}

/** Of more, the audit log has only those who differ: it shortens long lists. */
const MAX_LISTED_USERS = 200

export async function saveWorkflowUsers(
  db: PrismaDb,
  edit: WorkflowEdit,
  { userIds, version }: { readonly userIds: readonly string[]; readonly version: string },
): Promise<WorkflowDetailOut> {
  return await editWorkflow(db, edit, async (tx, before) => {
    const ids = [...new Set(userIds)]
    if (before.users_version === usersVersion(ids)) return undefined
    assertUnchangedSince(version, before.users_version, before)
    const { organizationId } = edit.principal
    const known = await tx.query<{ id: string; email: string }>(
      'SELECT id, email FROM users WHERE organization_id = $1 AND id = ANY ($2::uuid[]) ORDER BY id FOR KEY SHARE',
      [organizationId, ids],
    )
    const emails = new Map(known.rows.map(({ id, email }) => [id, email]))
    const unknown = userIds.findIndex((id) => !emails.has(id))
    if (unknown !== -1) throw new EditRefused('unknown_user', { index: unknown })
    const { workflowUser } = tx.prisma
    await workflowUser.deleteMany({ where: { workflowId: before.id, userId: { notIn: ids } } })
    const data = ids.map((userId) => ({ organizationId, workflowId: before.id, userId }))
    await workflowUser.createMany({ data, skipDuplicates: true })
    const [old, next] = [before.users.map(({ email }) => email), [...emails.values()].toSorted()]
    const isLong = old.length + next.length > MAX_LISTED_USERS
    const listed = (list: string[], others: Set<string>) => (isLong ? list.filter((email) => !others.has(email)) : list)
    return {
      action: 'workflow_users.saved',
      changes: [{ field: 'users', old: listed(old, new Set(next)), new: listed(next, new Set(old)) }],
    }
  })
}

/** Finds a run that has not ended: with a long queue, among all of the workflow, the newest first. */
async function findUnfinishedRun(tx: Transaction, organizationId: string, workflowId: string) {
  return (await hasQueueOf(tx, organizationId, VERY_LONG_QUEUE))
    ? await tx.query(
        `SELECT FROM starts WHERE workflow_id = $1 AND finished_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 1`,
        [workflowId],
      )
    : await tx.query(`SELECT FROM ${unfinishedStarts()} WHERE workflow_id = $2 LIMIT 1`, [organizationId, workflowId])
}

/**
 * Hides a workflow and switches it off; `purgeDeletedWorkflows` deletes it. A start that is recorded at the same moment
 * still runs.
 * @throws EditRefused `workflow_busy` while a run has not ended.
 */
export async function deleteWorkflow(db: PrismaDb, edit: WorkflowEdit): Promise<void> {
  await inPrismaTransaction(db, async (tx) => {
    const { name } = await lockWorkflow(tx, edit, 'FOR UPDATE')
    const unfinished = await findUnfinishedRun(tx, edit.principal.organizationId, edit.workflowId)
    if (unfinished.rowCount) throw new EditRefused('workflow_busy')
    await tx.prisma.workflow.update({
      where: { id: edit.workflowId },
      data: {
        deletedAt: await readClock(tx),
        isActive: false,
        autoRunEnabled: false,
        autoRunAnchorAt: null,
        autoRunNextAt: null,
        version: randomUUID(),
      },
    })
    await audit(tx, edit, name, { action: 'workflow.deleted', changes: [{ field: 'name', old: name, new: null }] })
  })
}
