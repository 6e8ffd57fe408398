import {
  END_RUN,
  type JournalStep,
  listToolCalls,
  type ModelAnswerStep,
  type NewJournalStep,
  type ToolCallPart,
  type ToolResultStep,
} from '@workflow-service/contract'
import { RunError } from '../../run-errors.ts'
import { indexToolResults } from '../agent-steps.ts'
import { formatDelivery } from '../deliveries.ts'
import { type Ending, readEnding } from './model-tools.ts'

type Steps = readonly (JournalStep | NewJournalStep)[]

/** How the model ended the run; undefined while it has not. */
export function findEnding(steps: Steps): Ending | undefined {
  const end = listCalls(steps).find(({ call, result }) => call.tool === END_RUN && result?.ok)
  return end && readEnding(end.call.arguments)
}

/**
 * Why the run cannot end by this call of `end_run`, in words for the model; undefined if it can. The model has seen the
 * results of earlier answers, but not of other calls in this one.
 */
export function findObstacle(steps: Steps, answer: ModelAnswerStep, call: ToolCallPart): string | undefined {
  const ending = readEnding(call.arguments)
  if (!ending) {
    return 'The run has not ended: status must be done, nothing_to_do or failed, and reason must be a text. Call it again.'
  }
  const calls = listToolCalls(answer)
  if (calls.filter(({ tool }) => tool === END_RUN).length > 1) {
    return `The run has not ended: ${END_RUN} was called more than once. Call it once.`
  }
  if (ending.status === 'failed') return undefined
  const results = indexToolResults(steps)
  const failed = calls.some(({ tool, call_id }) => tool !== END_RUN && results.get(call_id)?.ok === false)
  if (failed) {
    return `The run has not ended: another call of the same answer did not succeed. Consider its result, then call ${END_RUN} again.`
  }
  const isEmptyClaim = ending.status === 'done' && !hasAcceptedDelivery(steps) && !findOpenFailure(steps)
  return isEmptyClaim ? NOTHING_ACCEPTED : undefined
}

const NOTHING_ACCEPTED = `The run has not ended: no payload was accepted, so nothing was done. Call the tools that send payloads; if the workflow asks for none, call ${END_RUN} with nothing_to_do; if the task cannot be done, with failed.`

export function hasAcceptedDelivery(steps: Steps): boolean {
  return listCalls(steps).some(({ result }) => result?.delivery?.outcome === 'accepted')
}

/**
 * Whether an answer with its results brings the run no further: it calls no tool, ended for an unknown reason, or
 * claims to be done although nothing was accepted.
 */
export function isUnusable(steps: Steps, answer: ModelAnswerStep): boolean {
  const results = indexToolResults(steps)
  const calls = listToolCalls(answer)
  return (
    calls.length === 0 ||
    isInterrupted(answer) ||
    (calls.length === 1 && results.get(calls[0]?.call_id ?? '')?.text === NOTHING_ACCEPTED)
  )
}

/** Whether the answer did not end as an answer does, so that its calls may be incomplete. */
export function isInterrupted({ finish_reason, raw_finish_reason }: ModelAnswerStep): boolean {
  return !['stop', 'tool-calls'].includes(finish_reason) || raw_finish_reason === 'pause_turn'
}

/**
 * Fails a run that has ended, if the model says so, or if a delivery was not accepted and the model never tried again.
 * @throws RunError
 */
export function failUnlessSuccessful(steps: Steps, { status, reason }: Ending): void {
  const open = findOpenFailure(steps)
  if (open && status === 'failed') {
    throw new RunError(open.code, `${open.message}. The model ended the run as failed: ${reason}`)
  }
  if (open) throw open
  if (status === 'failed') throw new RunError('model_reported_failure', reason || 'The model gave no reason')
}

/**
 * The error of the last call that failed and was not corrected. A later call for the same webhook source, in another
 * answer, is an attempt to correct one failure. The call of an unknown tool is forgiven if another call of the answer
 * or a later one succeeds.
 */
function findOpenFailure(steps: Steps): RunError | undefined {
  const calls = listCalls(steps).filter(({ call }) => call.tool !== END_RUN)
  const lastSuccess = calls.findLast(({ result }) => result?.ok)?.turn ?? 0
  const open: { readonly turn: number; readonly sourceId: string | null; readonly error: RunError }[] = []
  for (const { turn, call, result } of calls) {
    const sourceId = result?.delivery?.source_id ?? call.source_id
    if (!result || isRepetition(result) || (sourceId === null && turn <= lastSuccess)) continue
    const corrected = open.findIndex((failure) => failure.sourceId === sourceId && failure.turn < turn)
    if (corrected !== -1) open.splice(corrected, 1)
    const error = toError(call, result)
    if (error) open.push({ turn, sourceId, error })
  }
  return open.at(-1)?.error
}

/** Whether nothing was sent because the payload was sent before: that corrects no failure, and is none. */
function isRepetition({ error }: ToolResultStep): boolean {
  return error === 'duplicate_payload' || error === 'may_have_arrived'
}

function toError(call: ToolCallPart, { ok, delivery, error, text }: ToolResultStep): RunError | undefined {
  if (ok) return undefined
  if (delivery) return new RunError(`delivery_${delivery.outcome}`, formatDelivery(delivery))
  if (error === 'too_many_deliveries' || error === 'delivery_declined' || error === 'approval_expired') {
    return new RunError(error, text)
  }
  if (error === 'invalid_call') {
    return new RunError('model_answer_invalid', `A call of ${call.tool} could not be executed: ${text}`)
  }
  return undefined
}

function listCalls(steps: Steps) {
  const results = indexToolResults(steps)
  return steps.flatMap((step) =>
    step.kind === 'model_answer'
      ? listToolCalls(step.data).map((call) => ({ turn: step.data.turn, call, result: results.get(call.call_id) }))
      : [],
  )
}
