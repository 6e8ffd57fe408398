import {
  CASE_MAX_BYTES,
  CASE_PAYLOADS_MAX,
  type CaseIn,
  type CaseOut,
  type CasePayload,
  type CaseRowOut,
  CASES_MAX,
  CASES_MAX_BYTES,
  type JournalStep,
  type NewJournalStep,
} from '@workflow-service/contract'
import {
  type AgedBatch,
  type Connection,
  type Database,
  type Db,
  deleteRows,
  type Transaction,
} from '../connection/index.ts'
import { changedFields, isVisible, queryVisible, type Viewer, viewerOf } from '../organizations/index.ts'
import { assertUnchangedSince, editBesideWorkflow, EditRefused, type WorkflowEdit } from '../workflows/index.ts'
import { findTrial } from './trials.ts'

const OF_WORKFLOW = `
  FROM cases JOIN workflows AS workflow ON workflow.id = cases.workflow_id AND ${isVisible('workflow', '$2')}
  WHERE cases.organization_id = $1 AND cases.workflow_id = $3`
const ROW = `cases.id, cases.name, left(cases.context, 200) AS text, json_array_length(cases.expected) AS payload_count,
  cases.run_id, cases.saved_by_name AS saved_by, cases.created_at, cases.version`

/** The cases of a workflow that the viewer sees, oldest first. */
export async function listCases(db: Connection, viewer: Viewer, workflowId: string): Promise<CaseRowOut[]> {
  return await queryVisible(db, viewer, `SELECT ${ROW} ${OF_WORKFLOW} ORDER BY cases.created_at, cases.id`, workflowId)
}

export async function findCase(
  db: Connection,
  viewer: Viewer,
  workflowId: string,
  id: string,
): Promise<CaseOut | undefined> {
  const text = `SELECT ${ROW}, cases.context, cases.expected ${OF_WORKFLOW} AND cases.id = $4`
  return (await queryVisible<CaseOut>(db, viewer, text, workflowId, id))[0]
}

/** The payloads that a journal has as accepted, in the order in which they were sent. */
export function listAcceptedPayloads(steps: readonly (JournalStep | NewJournalStep)[]): CasePayload[] {
  const accepted = new Set(
    steps.flatMap(({ kind, data }) =>
      kind === 'tool_result' && data.delivery?.outcome === 'accepted' ? [data.call_id] : [],
    ),
  )
  return steps.flatMap(({ kind, data }) => {
    if (kind !== 'tool_call' || !data.delivery || !accepted.has(data.call_id)) return []
    const { source_id, source_name, payload } = data.delivery
    return [{ source_id, source_name, payload }]
  })
}

/** Saves a case: a new one when `version` is null. @throws EditRefused */
export async function saveCase(
  db: Database,
  edit: WorkflowEdit,
  id: string,
  { version, ...wanted }: CaseIn,
): Promise<CaseOut> {
  const viewer = viewerOf(edit.principal)
  await editBesideWorkflow(db, edit, async (tx) => {
    await tx.query(LOCK_RUN, [edit.principal.organizationId, wanted.of?.run_id ?? null, id])
    const stored = await findCase({ pool: tx }, viewer, edit.workflowId, id)
    const { context, expected, runId, acceptedAt, ofVersion } = await readValues(tx, edit, stored, {
      ...wanted,
      version,
    })
    const values = { name: wanted.name, context, expected }
    const old = stored && { name: stored.name, context: stored.context, expected: stored.expected }
    if (JSON.stringify(old) === JSON.stringify(values)) return undefined
    assertUnchangedSince(version, stored?.version ?? null, stored ?? null)
    if (ofVersion !== undefined) assertUnchangedSince(ofVersion, stored?.version ?? null, stored ?? null)
    if (expected.length > CASE_PAYLOADS_MAX || Buffer.byteLength(JSON.stringify(expected)) > CASE_MAX_BYTES) {
      throw invalid(
        'expected',
        `must be at most ${CASE_PAYLOADS_MAX} payloads, and ${CASE_MAX_BYTES / 1_024} KiB in all`,
      )
    }
    const bytesBefore = await readCaseBytes(tx, id)
    const { rowCount } = await tx.query(UPSERT_CASE, [
      id,
      edit.principal.organizationId,
      edit.workflowId,
      runId,
      values.name,
      context,
      JSON.stringify(expected),
      edit.principal.userId,
      edit.principal.name,
      acceptedAt,
    ])
    if (!rowCount) {
      const taken = await tx.query('SELECT FROM cases WHERE id = $1', [id])
      const message = `A workflow has at most ${CASES_MAX} cases. Delete some that are not needed.`
      throw taken.rowCount ? new EditRefused('id_taken') : new EditRefused('limit_reached', { message })
    }
    // As they are stored: another text of the same length may be compressed less.
    if ((await readCaseBytes(tx, id)) > bytesBefore) await assertCasesFit(tx, edit.principal.organizationId)
    // Texts of customers stay out of the audit log, which is kept for longer.
    const changes = changedFields<object>(old ? { name: old.name, payloads: old.expected.length } : {}, {
      name: values.name,
      payloads: expected.length,
    })
    return { action: 'case.saved', changes }
  })
  const saved = await findCase(db, viewer, edit.workflowId, id)
  if (!saved) throw new EditRefused('id_taken')
  return saved
}

// `deleteRun` deletes the cases of a run: it either waits for one that is being saved, or is done before it is read.
const LOCK_RUN = `
  SELECT FROM starts WHERE organization_id = $1 AND id IN ($2, (SELECT run_id FROM cases WHERE id = $3)) FOR KEY SHARE`

// The lock of the workflow makes the count exact.
const UPSERT_CASE = `
  INSERT INTO cases (id, organization_id, workflow_id, run_id, name, context, expected, saved_by, saved_by_name,
    accepted_at)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10, now())
  WHERE (SELECT count(*) FROM cases WHERE workflow_id = $3 AND id <> $1) < ${CASES_MAX}
  ON CONFLICT (id) DO UPDATE SET run_id = $4, name = $5, context = $6, expected = $7, saved_by = $8, saved_by_name = $9,
    version = gen_random_uuid(), used_at = now(), accepted_at = coalesce($10, cases.accepted_at)
  WHERE cases.workflow_id = $3`

// It reads no value that is stored apart.
const CASE_BYTES = 'coalesce(sum(pg_column_size(expected) + pg_column_size(context)), 0)::float8 AS bytes FROM cases'

async function readCaseBytes(tx: Transaction, id: string): Promise<number> {
  return (await tx.query<{ bytes: number }>(`SELECT ${CASE_BYTES} WHERE id = $1`, [id])).rows[0]!.bytes
}

/** Called after the statement that wrote a case. Members of 1,000 workflows could store 13 GB. @throws EditRefused */
async function assertCasesFit(tx: Transaction, organizationId: string): Promise<void> {
  const { rows } = await tx.query<{ bytes: number }>(`SELECT ${CASE_BYTES} WHERE organization_id = $1`, [
    organizationId,
  ])
  if (rows[0]!.bytes <= CASES_MAX_BYTES) return
  const message = `The cases of an organization have at most ${CASES_MAX_BYTES / 1_048_576} MiB. Delete some that are not needed.`
  throw new EditRefused('limit_reached', { message })
}

interface CaseValues {
  readonly context: string
  readonly expected: readonly CasePayload[]
  readonly runId: string | null
  /** When the text was accepted, which dates such as "today" refer to; null: as it is stored, or now. */
  readonly acceptedAt: Date | null
  /** The version of the case that has the text which these payloads were made from. */
  readonly ofVersion?: string | null
}

async function readValues(
  tx: Transaction,
  { workflowId, principal }: WorkflowEdit,
  stored: CaseOut | undefined,
  { of, context, expected, version }: CaseIn,
): Promise<CaseValues> {
  if (!of) {
    const [text, payloads] = [context ?? stored?.context, expected ?? stored?.expected]
    if (text !== undefined && payloads)
      return { context: text, expected: payloads, runId: stored?.run_id ?? null, acceptedAt: null }
    throw invalid(text === undefined ? 'context' : 'expected', 'is missing')
  }
  const { run_id: runId = null, trial_id: trialId, result_id: resultId } = of
  if (runId !== null) {
    const { rows } = await tx.query<FoundRun>(FIND_RUN, [principal.organizationId, workflowId, runId])
    if (!rows[0]) throw invalid('of.run_id', 'must be a run that has succeeded')
    const { accepted, hasJournal, ...found } = rows[0]
    if (hasJournal && found.expected.length >= accepted) return { ...found, runId }
    throw invalid('of.run_id', `must be a run ${INCOMPLETE}`)
  }
  if (trialId !== undefined) {
    const asked = { id: trialId, workflowId, userId: principal.userId }
    const trial = await findTrial({ pool: tx }, viewerOf(principal), asked)
    // A repeated save of a new case, whose trial was replaced or deleted meanwhile.
    if (!trial && stored && version === null) return { ...stored, runId: stored.run_id, acceptedAt: null }
    if (!trial || trial.finished_at === null || trial.error !== null) {
      throw invalid('of.trial_id', 'must be a trial without an error')
    }
    const steps = trial.steps as unknown as JournalStep[]
    if (steps.some(({ data }) => 'omitted_bytes' in data)) {
      throw invalid('of.trial_id', 'must be a trial whose steps are all kept: those of this one were too large')
    }
    const acceptedAt = new Date(trial.created_at)
    return { context: trial.context, expected: listAcceptedPayloads(steps), runId: null, acceptedAt }
  }
  const { rows } = await tx.query<{ expected: CasePayload[]; ofVersion: string | null }>(
    `SELECT payloads AS expected, case_version AS "ofVersion" FROM evaluation_results
     WHERE id = $1 AND case_id = $2 AND error IS NULL AND payloads IS NOT NULL`,
    [resultId, stored?.id],
  )
  if (rows[0] && stored) return { ...rows[0], context: stored.context, runId: stored.run_id, acceptedAt: null }
  throw invalid('of', 'must be a run, a trial, or a result of the case')
}

const invalid = (what: string, message: string) => new EditRefused('invalid_value', { what, message })

const INCOMPLETE =
  'whose journal and deliveries are all kept: this one is so old that they were deleted. Write the case instead'

interface FoundRun extends Omit<CaseValues, 'runId'> {
  /** The payloads that were accepted as the journal has them. */
  readonly accepted: number
  /** The journal of a run that has succeeded is never empty. */
  readonly hasJournal: boolean
}

// The retention deletes deliveries and journals before runs.
const FIND_RUN = `
  SELECT context, created_at AS "acceptedAt", (
    SELECT coalesce(json_agg(json_build_object(
      'source_id', source_id, 'source_name', source.name, 'payload', request_body
    ) ORDER BY deliveries.created_at, deliveries.id), '[]')
    FROM deliveries JOIN webhook_sources AS source ON source.id = source_id
    WHERE deliveries.organization_id = $1 AND run_id = $3 AND deliveries.kind = 'payload' AND outcome = 'accepted'
      AND resend_of IS NULL
  ) AS expected, (
    SELECT count(*)::integer FROM run_steps
    WHERE run_id = starts.id AND run_steps.kind = 'tool_result' AND data #>> '{delivery,outcome}' = 'accepted'
  ) AS accepted, EXISTS (SELECT FROM run_steps WHERE run_id = starts.id) AS "hasJournal"
  FROM starts WHERE organization_id = $1 AND workflow_id = $2 AND id = $3 AND status = 'succeeded'`

/** Deletes a case with its results. @throws EditRefused */
export async function deleteCase(db: Database, edit: WorkflowEdit, id: string, version: string): Promise<void> {
  await editBesideWorkflow(db, edit, async (tx) => {
    const stored = await findCase({ pool: tx }, viewerOf(edit.principal), edit.workflowId, id)
    if (!stored) throw new EditRefused('not_found', { what: 'Case' })
    assertUnchangedSince(version, stored.version, stored)
    await tx.query('DELETE FROM cases WHERE id = $1', [id])
    return { action: 'case.deleted', changes: [{ field: 'name', old: stored.name, new: null }] }
  })
}

/**
 * Deletes cases that were neither kept nor evaluated for these days, and evaluations that are older. Resolves to how
 * many, at most twice `batchSize`.
 */
export async function deleteOldCases(db: Db, { olderThanDays, batchSize }: AgedBatch): Promise<number> {
  const deleteOld = (table: string, time: string): Promise<number> => {
    const where = `${time} < now() - make_interval(days => $2) ORDER BY ${time}`
    return deleteRows(db, { table, where }, batchSize, olderThanDays)
  }
  return (await deleteOld('cases', 'used_at')) + (await deleteOld('evaluations', 'created_at'))
}
