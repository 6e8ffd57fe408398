import {
  type CaseDifference,
  type CasePayload,
  EVALUATIONS_AT_ONCE,
  EVALUATIONS_KEPT,
  EVALUATIONS_MAX_BYTES,
  type EvaluationDetailOut,
  type EvaluationIn,
  type EvaluationOut,
  RULES_FILE_NAME,
} from '@workflow-service/contract'
import { type Connection, type Database, type Db, newId, queryRows } from '../connection/index.ts'
import { isVisible, queryVisible, type Viewer } from '../organizations/index.ts'
import {
  assertOffered,
  editBesideWorkflow,
  EditRefused,
  recordVersions,
  type VersionDocument,
  type WorkflowEdit,
} from '../workflows/index.ts'
import { type ClaimedAttempt, type ClaimedRun, IS_LEASED } from './claimed-run.ts'

/** Executions of a case: a runner that dies with it, or a model that limits requests, does not keep it from ending. */
export const MAX_CASE_ATTEMPTS = 5
/** Cases of one organization that all runners try at once. */
const CASES_AT_ONCE = 4

/**
 * The oldest evaluations of an organization that have ended, beyond those whose results have so many bytes. It reads no
 * value that is stored apart. Two that start at the same time skip what the other one deletes.
 */
const DELETE_OLDEST = `
  DELETE FROM evaluations WHERE id IN (
    SELECT id FROM evaluations WHERE id IN (
      SELECT id FROM (
        SELECT evaluation.id, has_ended,
          sum(bytes) OVER (ORDER BY evaluation.created_at DESC, evaluation.id DESC) AS bytes
        FROM evaluations AS evaluation CROSS JOIN LATERAL (
          SELECT bool_and(finished_at IS NOT NULL) AS has_ended,
            sum(coalesce(pg_column_size(payloads), 0) + coalesce(pg_column_size(differences), 0)) AS bytes
          FROM evaluation_results WHERE evaluation_id = evaluation.id
        ) AS results WHERE evaluation.organization_id = $1
      ) AS newest_first WHERE has_ended AND bytes > $2
    ) FOR UPDATE SKIP LOCKED
  )`

/**
 * Starts an evaluation of all cases of the workflow, and deletes the oldest ones beyond what is kept. Repeated with the
 * same id, it changes nothing.
 * @throws EditRefused
 */
export async function startEvaluation(
  db: Database,
  edit: WorkflowEdit,
  evaluation: EvaluationIn,
  maxBytes = EVALUATIONS_MAX_BYTES,
): Promise<void> {
  const { id, model, version_id: versionId, description, rules } = evaluation
  const { organizationId, userId, name } = edit.principal
  await editBesideWorkflow(db, edit, async (tx) => {
    const known = await tx.query<{ workflow_id: string }>('SELECT workflow_id FROM evaluations WHERE id = $1', [id])
    if (known.rows[0]?.workflow_id === edit.workflowId) return undefined
    if (known.rows[0]) throw new EditRefused('id_taken')
    if (model !== null) await assertOffered(tx, edit, model)
    // Of several that are started at once for different workflows, none exceeds the limit.
    await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`evaluations of ${organizationId}`])
    const running = await tx.query(
      `SELECT FROM evaluation_results AS result JOIN evaluations ON evaluations.id = evaluation_id
       JOIN workflows ON workflows.id = workflow_id AND deleted_at IS NULL
       WHERE result.organization_id = $1 AND finished_at IS NULL GROUP BY evaluation_id`,
      [organizationId],
    )
    if ((running.rowCount ?? 0) >= EVALUATIONS_AT_ONCE) {
      const message = `${EVALUATIONS_AT_ONCE} evaluations of the organization have not ended. Wait for one, or stop it.`
      throw new EditRefused('limit_reached', { message })
    }
    // Also what a service of 1.0.0, which has no versions, has saved.
    await recordVersions(tx, [edit.workflowId], null)
    const { rows: versions } = await tx.query<{ number: number }>(
      `SELECT number FROM workflow_versions WHERE workflow_id = $1 AND ($2::uuid IS NULL OR id = $2)
       ORDER BY number DESC LIMIT 1`,
      [edit.workflowId, versionId],
    )
    if (!versions[0]) throw new EditRefused('not_found', { what: 'Version' })
    const { rows: cases } = await tx.query<{ id: string }>(
      'UPDATE cases SET used_at = now() WHERE workflow_id = $1 RETURNING id, created_at',
      [edit.workflowId],
    )
    if (cases.length === 0) throw new EditRefused('invalid_value', { what: 'cases', message: 'are missing: keep one' })
    await tx.query(
      `INSERT INTO evaluations (id, organization_id, workflow_id, model, version_number, description, rules, started_by,
         started_by_name)
       SELECT $1, $2, id, coalesce($4, model), $5, $6, $7, $8, $9 FROM workflows WHERE id = $3`,
      [id, organizationId, edit.workflowId, model, versions[0].number, description, rules, userId, name],
    )
    await tx.query(
      `INSERT INTO evaluation_results (id, organization_id, evaluation_id, case_id)
       SELECT result_id, $1, $2, id FROM (
         SELECT id, row_number() OVER (ORDER BY created_at, id) AS number FROM cases WHERE workflow_id = $3
       ) AS numbered JOIN unnest($4::uuid[]) WITH ORDINALITY AS new (result_id, number) USING (number)`,
      [organizationId, id, edit.workflowId, cases.map(() => newId())],
    )
    await tx.query(
      `DELETE FROM evaluations WHERE workflow_id = $1 AND id NOT IN (
         SELECT id FROM evaluations WHERE workflow_id = $1 ORDER BY created_at DESC, id DESC LIMIT ${EVALUATIONS_KEPT}
       )`,
      [edit.workflowId],
    )
    await tx.query(DELETE_OLDEST, [organizationId, maxBytes])
    const changes = [
      { field: 'cases', old: null, new: cases.length },
      { field: 'model', old: null, new: model },
      { field: 'version', old: null, new: versions[0].number },
    ]
    return { action: 'evaluation.started', changes }
  })
}

/** Ends the cases that no runner has begun, and those whose runner has not recorded a result. @throws EditRefused */
export async function stopEvaluation(db: Database, edit: WorkflowEdit, id: string): Promise<void> {
  await editBesideWorkflow(db, edit, async (tx) => {
    const { rowCount } = await tx.query(
      `UPDATE evaluation_results SET finished_at = now(), error = 'stopped: A person stopped the evaluation'
       WHERE evaluation_id = (SELECT id FROM evaluations WHERE id = $1 AND workflow_id = $2) AND finished_at IS NULL`,
      [id, edit.workflowId],
    )
    if (!rowCount) return undefined
    return { action: 'evaluation.stopped', changes: [{ field: 'cases', old: rowCount, new: 0 }] }
  })
}

const EVALUATIONS = `
  SELECT evaluation.id, evaluation.model, evaluation.version_number, evaluation.description, evaluation.rules,
    evaluation.started_by_name AS started_by, evaluation.created_at, total.*
  FROM evaluations AS evaluation
  JOIN workflows AS workflow ON workflow.id = evaluation.workflow_id AND ${isVisible('workflow', '$2')}
  CROSS JOIN LATERAL (
    SELECT CASE WHEN count(*) = count(finished_at) THEN coalesce(max(finished_at), evaluation.created_at) END AS finished_at,
      count(*)::integer AS total, count(finished_at)::integer AS done,
      (count(*) FILTER (WHERE error IS NULL AND differences::text = '[]'))::integer AS same,
      sum(cost_micros)::float8 AS cost_micros, coalesce(sum(duration_ms), 0)::integer AS duration_ms
    FROM evaluation_results WHERE evaluation_id = evaluation.id
  ) AS total
  WHERE evaluation.organization_id = $1 AND evaluation.workflow_id = $3`

/** The evaluations of a workflow that the viewer sees, newest first. */
export async function listEvaluations(db: Connection, viewer: Viewer, workflowId: string): Promise<EvaluationOut[]> {
  const text = `${EVALUATIONS} ORDER BY evaluation.created_at DESC, evaluation.id DESC LIMIT ${EVALUATIONS_KEPT}`
  return await queryVisible(db, viewer, text, workflowId)
}

export async function findEvaluation(
  db: Connection,
  viewer: Viewer,
  workflowId: string,
  id: string,
): Promise<EvaluationDetailOut | undefined> {
  const text = `${EVALUATIONS} AND evaluation.id = $4`
  const [found] = await queryVisible<EvaluationOut>(db, viewer, text, workflowId, id)
  if (!found) return undefined
  const results = await queryRows<EvaluationDetailOut['results'][number]>(
    db,
    `SELECT result.id, result.case_id, cases.name AS case_name, coalesce(result.case_version, cases.version) AS case_version, result.finished_at,
       result.error, json_array_length(result.payloads) AS payload_count, coalesce(result.differences, '[]') AS differences,
       result.cost_micros::float8 AS cost_micros, result.duration_ms
     FROM evaluation_results AS result JOIN cases ON cases.id = result.case_id
     WHERE result.evaluation_id = $1 ORDER BY result.id`,
    [id],
  )
  return { ...found, results }
}

/** A case that this process tries. */
export interface ClaimedCase {
  readonly run: ClaimedRun
  readonly expected: readonly CasePayload[]
  /** Undefined: the version was deleted meanwhile. */
  readonly files: VersionDocument['files'] | undefined
  /** The rules in place of those of the version; null for these. */
  readonly rules: string | null
}

interface CaseRow extends Pick<ClaimedCase, 'expected' | 'rules'> {
  readonly run: Omit<ClaimedRun, 'workflow' | 'inputMessage'>
  readonly workflow: { readonly id: string; readonly model: string | null; readonly description: string | null }
  readonly document: VersionDocument | null
}

/**
 * Claims the next case that no process tries, for `leaseMs`: first of the organization of which the fewest are under
 * way. None of a deleted workflow, whose evaluations are deleted after its runs.
 */
export async function claimCase(db: Db, leaseMs: number): Promise<ClaimedCase | undefined> {
  // Named, as every runner sends it each second. ARRAY(…) reads the few workflows that are being deleted once, not the
  // workflow of each result.
  const { rows } = await db.pool.query<CaseRow>({
    name: 'claim-case',
    text: `WITH leased AS (
       UPDATE evaluation_results SET attempts = attempts + 1, lease_until = clock_timestamp() + $1 * interval '1 ms',
         case_version = (SELECT version FROM cases WHERE id = case_id)
       WHERE id = (
         SELECT id FROM evaluation_results AS result CROSS JOIN LATERAL (
           SELECT count(*) AS count FROM evaluation_results AS other
           WHERE other.organization_id = result.organization_id AND other.finished_at IS NULL AND other.lease_until > now()
         ) AS busy
         WHERE finished_at IS NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())
           AND busy.count < ${CASES_AT_ONCE}
           AND NOT (SELECT is_suspended FROM organizations WHERE id = result.organization_id)
           AND evaluation_id <> ALL (ARRAY(
             SELECT evaluations.id FROM workflows JOIN evaluations ON workflow_id = workflows.id
             WHERE workflows.deleted_at IS NOT NULL
           ))
         ORDER BY busy.count, id LIMIT 1 FOR UPDATE OF result SKIP LOCKED
       ) RETURNING *
     )
     SELECT json_build_object(
         'id', leased.id, 'organizationId', leased.organization_id, 'sessionId', leased.id, 'number', 1,
         'context', cases.context, 'acceptedAt', coalesce(cases.accepted_at, cases.created_at), 'claimedAt', now(),
         'requestId', leased.id, 'trace', NULL, 'attempts', leased.attempts, 'isFirst', true, 'waitedMs', NULL
       ) AS run,
       json_build_object(
         'id', evaluation.workflow_id, 'model', evaluation.model, 'description', evaluation.description
       ) AS workflow,
       evaluation.rules, cases.expected, version.document
     FROM leased JOIN evaluations AS evaluation ON evaluation.id = leased.evaluation_id
     JOIN cases ON cases.id = leased.case_id
     LEFT JOIN workflow_versions AS version
       ON version.workflow_id = evaluation.workflow_id AND version.number = evaluation.version_number`,
    values: [leaseMs],
  })
  return rows[0] && toClaimedCase(rows[0])
}

function toClaimedCase({ run, workflow, document, expected, rules }: CaseRow): ClaimedCase {
  const files = document?.files
  const trigger = document?.triggers.find(
    ({ is_active: isActive, trigger_source: source }) => isActive && source.slug === 'api',
  )
  return {
    run: {
      ...run,
      workflow: {
        ...workflow,
        name: document?.name ?? '',
        description: workflow.description ?? document?.description ?? '',
        rulesFileId: files?.find(({ name, path }) => name === RULES_FILE_NAME && path.length === 0)?.id ?? null,
        rulesLikeFiles: files?.filter(({ name }) => /rules\.y/iu.test(name)).slice(0, 20),
      },
      inputMessage: trigger?.input_message ?? '',
    },
    expected,
    files,
    rules,
  }
}

/** What a case would send, or why it failed. */
export interface CaseResult extends ClaimedAttempt {
  readonly error: string | null
  readonly payloads: readonly CasePayload[] | null
  readonly differences: readonly CaseDifference[]
  readonly costMicros: number | null
  readonly durationMs: number
}

/** Records the result, unless the lease is lost, the case is deleted, or the evaluation was stopped. */
export async function finishCase(db: Db, result: CaseResult): Promise<void> {
  const { id, attempts, error, payloads, differences, costMicros, durationMs } = result
  await db.pool.query(
    `UPDATE evaluation_results SET finished_at = now(), lease_until = NULL, error = $3, payloads = $4, differences = $5,
       cost_micros = $6, duration_ms = $7
     WHERE ${IS_LEASED}`,
    [id, attempts, error, payloads && JSON.stringify(payloads), JSON.stringify(differences), costMicros, durationMs],
  )
}

/**
 * Gives a case back, so that a process tries it after `delayMs`, unless the lease is lost. `isCounted`: as one of its
 * attempts.
 */
export async function releaseCase(
  db: Db,
  { id, attempts }: ClaimedAttempt,
  { delayMs, isCounted }: { readonly delayMs: number; readonly isCounted: boolean },
): Promise<void> {
  await db.pool.query(
    `UPDATE evaluation_results SET lease_until = clock_timestamp() + $3 * interval '1 ms', attempts = attempts - $4
     WHERE ${IS_LEASED}`,
    [id, attempts, delayMs, isCounted ? 0 : 1],
  )
}
