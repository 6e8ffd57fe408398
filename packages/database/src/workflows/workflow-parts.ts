import {
  type AppFileOut,
  FILE_NAMES_MAX_BYTES,
  type SaveFileIn,
  type SaveTriggerIn,
  TRIGGERS_MAX_BYTES,
  type WorkflowDetailOut,
} from '@workflow-service/contract'
import type { Connection, PrismaDb, Queryable, Transaction } from '../connection/index.ts'
import {
  assertQuota,
  type AuditChange,
  changedFields,
  isVisible,
  queryVisible,
  type Viewer,
  viewerOf,
} from '../organizations/index.ts'
import { type TriggerValues, triggerVersion } from './workflow-detail.ts'
import { assertUnchangedSince, EditRefused, editWorkflow, type WorkflowEdit } from './workflow-edits.ts'

// The filters of an unchanged trigger keep their text: numbers and names that JavaScript writes otherwise stay as they
// are.
const UPSERT_TRIGGER = `
  INSERT INTO triggers (id, workflow_id, name, is_active, source_slug, source_name, filters, input_message, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8, coalesce($10::timestamptz, now()))
  ON CONFLICT (id) DO UPDATE SET name = $3, is_active = $4, source_slug = $5, source_name = $6, input_message = $8,
    filters = CASE WHEN $9 THEN triggers.filters ELSE $7::json END,
    created_at = coalesce($10::timestamptz, triggers.created_at)
  WHERE triggers.workflow_id = $2`

/** Saves a trigger: a new one when `version` is null. */
export async function saveTrigger(
  db: PrismaDb,
  edit: WorkflowEdit,
  triggerId: string,
  { version, ...values }: SaveTriggerIn,
): Promise<WorkflowDetailOut> {
  const wanted: TriggerValues = { ...values, subagent_sources: values.subagent_sources.toSorted(inDocumentOrder) }
  return await editWorkflow(db, edit, async (tx, before) => {
    const stored = before.triggers.find(({ id }) => id === triggerId)
    const storedVersion = stored?.version ?? null
    if (storedVersion === triggerVersion(wanted)) return undefined
    assertUnchangedSince(version, storedVersion, before)
    assertPartsFit(before.triggers, { ...wanted, id: triggerId }, TRIGGERS_MAX_BYTES, 'Triggers')
    await writeTrigger(tx, before.id, { ...wanted, id: triggerId }, stored)
    if (!stored) await assertQuota(tx, edit, 'triggers', before.id)
    const changes = changedFields<object>(stored ?? {}, wanted)
    return { action: 'trigger.saved', changes: ofPart('trigger', wanted.name || triggerId, changes) }
  })
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/**
 * Refuses a part with which the document of its workflow would be too large: each read and each save answers with all
 * of it, and 100 triggers may have 30 MB.
 * @throws EditRefused
 */
function assertPartsFit(
  parts: readonly { readonly id: string }[],
  { id, ...wanted }: { readonly id: string },
  maxBytes: number,
  what: string,
): void {
  const stored = parts.find((part) => part.id === id)
  // With its id and version: one that a manifest made too large can be paused.
  if (stored && bytesOf(wanted) <= bytesOf(stored)) return
  if (bytesOf([...parts.filter((part) => part !== stored), wanted]) <= maxBytes) return
  const message = `${what} of a workflow have at most ${maxBytes / 1_024} KiB of JSON in all. Shorten or delete some.`
  throw new EditRefused('limit_reached', { message })
}

/**
 * Writes a trigger over the stored one, with `created_at` if it is given: the oldest trigger is fired.
 * @throws EditRefused `id_taken` if another workflow has its id.
 */
export async function writeTrigger(
  tx: Transaction,
  workflowId: string,
  { id: triggerId, created_at: createdAt, ...wanted }: TriggerValues & { id: string; created_at?: string },
  stored: TriggerValues | undefined,
): Promise<void> {
  const filters = wanted.filters && JSON.stringify(wanted.filters)
  const { rowCount } = await tx.query(UPSERT_TRIGGER, [
    triggerId,
    workflowId,
    wanted.name,
    wanted.is_active,
    wanted.trigger_source.slug,
    wanted.trigger_source.name,
    filters,
    wanted.input_message,
    stored !== undefined && (stored.filters && JSON.stringify(stored.filters)) === filters,
    createdAt ?? null,
  ])
  if (!rowCount) throw new EditRefused('id_taken', { what: 'Trigger' })
  const { triggerEvent, subagentSource } = tx.prisma
  await triggerEvent.deleteMany({ where: { triggerId } })
  await triggerEvent.createMany({ data: wanted.events.map((event, position) => ({ triggerId, position, ...event })) })
  await subagentSource.deleteMany({ where: { triggerId } })
  await subagentSource.createMany({
    data: wanted.subagent_sources.map(({ id: sourceId, name, type }, position) => ({
      triggerId,
      position,
      sourceId: sourceId ?? null,
      name,
      type,
    })),
  })
}

/** First the sources whose type is not `platform_internal`; each group by name in code point order. */
function inDocumentOrder(a: { name: string; type: string }, b: { name: string; type: string }): number {
  const internalLast = Number(a.type === 'platform_internal') - Number(b.type === 'platform_internal')
  return internalLast || Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))
}

/** Names the trigger or file in each change. */
function ofPart(kind: string, name: string, changes: readonly AuditChange[]): AuditChange[] {
  return changes.map((change) => ({ ...change, field: `${kind} ${name}: ${change.field}` }))
}

function removedFields(old: object): AuditChange[] {
  return Object.entries(old).map(([field, value]) => ({ field, old: value as unknown, new: null }))
}

export async function deleteTrigger(
  db: PrismaDb,
  edit: WorkflowEdit,
  triggerId: string,
  version: string,
): Promise<WorkflowDetailOut> {
  return await editWorkflow(db, edit, async (tx, before) => {
    const stored = before.triggers.find(({ id }) => id === triggerId)
    if (!stored) throw new EditRefused('not_found', { what: 'Trigger' })
    assertUnchangedSince(version, stored.version, before)
    await tx.prisma.trigger.delete({ where: { id: triggerId } })
    const { id: _id, version: _version, ...values } = stored
    return { action: 'trigger.deleted', changes: ofPart('trigger', stored.name || triggerId, removedFields(values)) }
  })
}

/** Reads a file with its content; undefined when the person cannot see it. */
export async function readAppFile(
  db: Connection,
  viewer: Viewer,
  workflowId: string,
  fileId: string,
): Promise<AppFileOut | undefined> {
  // By hand: the same condition on what a person sees as in the statements of lists.
  const text = `
    SELECT files.id, files.name, files.path, files.content, files.version
    FROM workflows AS workflow JOIN files ON files.workflow_id = workflow.id
    WHERE workflow.organization_id = $1 AND ${isVisible('workflow', '$2')} AND workflow.id = $3 AND files.id = $4`
  return (await queryVisible<AppFileOut>(db, viewer, text, workflowId, fileId))[0]
}

function readStored(tx: Queryable, { workflowId, principal }: WorkflowEdit, fileId: string) {
  return readAppFile({ pool: tx }, viewerOf(principal), workflowId, fileId)
}

/** Inserts a file, or overwrites the one of the workflow with its id. */
const UPSERT_FILE = `
  INSERT INTO files (id, workflow_id, name, path, content) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (id) DO UPDATE SET name = $3, path = $4, content = $5, version = gen_random_uuid()
  WHERE files.workflow_id = $2`

/** Saves a file: a new one when `version` is null. */
export async function saveFile(
  db: PrismaDb,
  edit: WorkflowEdit,
  fileId: string,
  { version, ...wanted }: SaveFileIn,
): Promise<WorkflowDetailOut> {
  return await editWorkflow(db, edit, async (tx, before) => {
    const stored = await readStored(tx, edit, fileId)
    if (stored && JSON.stringify(valuesOf(stored)) === JSON.stringify(valuesOf(wanted))) return undefined
    assertUnchangedSince(version, stored?.version ?? null, stored ?? null)
    const location = [...wanted.path, wanted.name].join('/')
    if (before.files.some(({ id, path, name }) => id !== fileId && [...path, name].join('/') === location)) {
      throw new EditRefused('file_name_taken')
    }
    const { content: _content, ...named } = wanted
    assertPartsFit(before.files, { ...named, id: fileId }, FILE_NAMES_MAX_BYTES, 'Names and folders of the files')
    const { rowCount } = await tx.query(UPSERT_FILE, [fileId, before.id, wanted.name, wanted.path, wanted.content])
    if (!rowCount) throw new EditRefused('id_taken', { what: 'File' })
    if (!stored) await assertQuota(tx, edit, 'files', before.id)
    const isLarger = Buffer.byteLength(wanted.content) > Buffer.byteLength(stored?.content ?? '')
    if (isLarger) await assertQuota(tx, edit, 'file_bytes')
    const changes = changedFields<object>(stored ?? {}, wanted)
    return { action: 'file.saved', changes: ofPart('file', location, changes) }
  })
}

function valuesOf({ name, path, content }: Omit<AppFileOut, 'id' | 'version'>) {
  return { name, path, content }
}

export async function deleteFile(
  db: PrismaDb,
  edit: WorkflowEdit,
  fileId: string,
  version: string,
): Promise<WorkflowDetailOut> {
  return await editWorkflow(db, edit, async (tx) => {
    const stored = await readStored(tx, edit, fileId)
    if (!stored) throw new EditRefused('not_found', { what: 'File' })
    assertUnchangedSince(version, stored.version, stored)
    await tx.prisma.file.delete({ where: { id: fileId } })
    return {
      action: 'file.deleted',
      changes: ofPart('file', [...stored.path, stored.name].join('/'), removedFields(valuesOf(stored))),
    }
  })
}
