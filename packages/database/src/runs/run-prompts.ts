import type { JournalStep, RunPrompt } from '@workflow-service/contract'
import { type Db, runStatement, statement } from '../connection/index.ts'
import { isVisible, type Viewer } from '../organizations/index.ts'
import { readBoundedSteps } from './run-lists.ts'

const RECORD_RUN_PROMPT = statement('runs/record-run-prompt', {})

/**
 * Records that a model is asked with this prompt when the journal's next step is at `position`. The prompt is stored
 * once for all requests in turn that have it. Repeating the call does no harm.
 */
export async function recordRunPrompt(db: Db, runId: string, position: number, prompt: RunPrompt): Promise<void> {
  await runStatement(db, RECORD_RUN_PROMPT, [runId, position, JSON.stringify(prompt)])
}

/** A prompt of a run: the requests from `position` on have it, the last one at `askedPosition`. */
export interface RecordedPrompt {
  readonly position: number
  readonly askedPosition: number
  readonly prompt: RunPrompt
}

/** Prompts of a run that are read: a run changes its tools at most once for each answer. */
const MAX_PROMPTS = 25

/**
 * The prompts and the journal of a run that the viewer sees, bounded as `findVisibleRun` does; undefined if there is no
 * such run.
 */
export async function findRunPrompts(
  db: Db,
  { organizationId, memberId }: Viewer,
  runId: string,
): Promise<{ prompts: RecordedPrompt[]; steps: JournalStep[] } | undefined> {
  const { rowCount } = await db.pool.query(
    `SELECT FROM starts AS start
     JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
     WHERE start.organization_id = $1 AND start.id = $3`,
    [organizationId, memberId, runId],
  )
  if (!rowCount) return undefined
  const { rows: prompts } = await db.pool.query<RecordedPrompt>(
    `SELECT position, asked_position AS "askedPosition", prompt FROM run_prompts
     WHERE run_id = $1 ORDER BY position LIMIT ${MAX_PROMPTS}`,
    [runId],
  )
  const steps = await readBoundedSteps(db, runId)
  return { prompts, steps: steps.map(toStep) }
}

/** The step, with a remark in place of what was left out. */
function toStep({
  created_at: createdAt,
  data,
  ...step
}: Awaited<ReturnType<typeof readBoundedSteps>>[number]): JournalStep {
  const { omitted_bytes: omitted } = data as { omitted_bytes?: number }
  const text = `[${omitted} bytes are not shown]`
  const shown = omitted === undefined ? data : { call_id: '', parts: [{ type: 'text', text }], text }
  return { ...step, createdAt, data: shown } as unknown as JournalStep
}
