import { isDeepStrictEqual } from 'node:util'
import {
  ANSWER_MAX_LENGTH,
  APPROVAL_DAYS,
  type DeliveryOutcome,
  type NewJournalStep,
  PAYLOAD_DEADLINE_MS,
  type ToolCallStep,
  type ToolResultStep,
  truncateText,
} from '@workflow-service/contract'
import type { ApprovalState, PayloadToApprove } from '@workflow-service/database'
import { type AgentSteps, listPendingCalls } from './agent-steps.ts'
import type { AgentRun, DeliveryResult } from './agent.ts'
import { markUntrusted } from './untrusted-text.ts'

/** A tool call that sends a payload. */
export interface DeliveryCall extends ToolCallStep {
  readonly delivery: NonNullable<ToolCallStep['delivery']>
}

/** The result of a delivery in the journal. */
export type RecordedDelivery = NonNullable<ToolResultStep['delivery']>

/**
 * Outcomes after which the payload may have arrived, although the endpoint gave no answer (contract README,
 * "Deliveries").
 */
const POSSIBLY_SENT: ReadonlySet<DeliveryOutcome> = new Set(['timed_out', 'unreachable', 'unknown'])

export function mayHaveArrived({ outcome }: Pick<RecordedDelivery, 'outcome'>): boolean {
  return POSSIBLY_SENT.has(outcome)
}

/** Whether both are the same JSON, irrespective of the order of the fields. */
export function isSamePayload(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  // JSON has no -0, so one that is read from the journal is 0.
  return isDeepStrictEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)))
}

export function isDeliveryCall(call: ToolCallStep): call is DeliveryCall {
  return call.delivery !== undefined
}

/**
 * Sends the payload of a tool call that is in the journal, and returns the step that records the result. Safe to repeat
 * after a crash: a second call with the same delivery id gives the recorded result. Parks the run while the payload
 * waits for an approval.
 */
export async function sendDelivery(run: AgentRun, steps: AgentSteps, call: DeliveryCall): Promise<NewJournalStep> {
  const { id, source_id, payload } = call.delivery
  let isRequested = steps.all.some((step) => step.kind === 'approval_request' && step.data.delivery_id === id)
  for (;;) {
    const approval = isRequested ? await readDecision(run, steps, call) : undefined
    if (approval?.status === 'declined' || approval?.status === 'expired') return toWithheldStep(call, approval)
    if (approval?.status !== 'waiting') {
      const result = await run.deliver({ deliveryId: id, sourceId: source_id, payload })
      if (result.outcome !== 'approval_required') return toResultStep(run, call, result)
      if (approval) throw new Error('The dispatcher did not find the approval of this payload')
    }
    await run.parkForApproval(listUndelivered(steps, call))
    isRequested = true
  }
}

/** The approval of the call's payload as it is now. A decision is written to the journal. */
async function readDecision(run: AgentRun, steps: AgentSteps, call: DeliveryCall): Promise<ApprovalState | undefined> {
  const { id } = call.delivery
  const approval = await run.readApproval(id)
  const isKnown = steps.all.some((step) => step.kind === 'approval_decision' && step.data.delivery_id === id)
  if (approval && approval.status !== 'waiting' && !isKnown) {
    const { status: decision, decidedBy, reason } = approval
    const data = { call_id: call.call_id, delivery_id: id, decision, decided_by: decidedBy, reason }
    await steps.append({ kind: 'approval_decision', data })
  }
  return approval
}

/** The call's payload, and the planned ones after it: one look of a person can decide on all of them. */
function listUndelivered(steps: AgentSteps, call: DeliveryCall): [PayloadToApprove, ...PayloadToApprove[]] {
  const others = listPendingCalls(steps.all).filter(isDeliveryCall)
  return [toPayload(call), ...others.filter(({ call_id }) => call_id !== call.call_id).map(toPayload)]
}

function toPayload({ call_id, delivery }: DeliveryCall): PayloadToApprove {
  const { id, source_id, source_name, payload } = delivery
  return { callId: call_id, deliveryId: id, sourceId: source_id, sourceName: source_name, payload }
}

/** The result of a payload that a person declined, or that expired. */
function toWithheldStep(
  { call_id, tool, delivery }: DeliveryCall,
  { status, decidedBy, reason }: ApprovalState,
): NewJournalStep {
  const why =
    status === 'expired'
      ? `no person approved the payload within ${APPROVAL_DAYS} days`
      : `${decidedBy ?? 'A person'} declined the payload${reason === null ? '' : `: ${reason}`}`
  const error = status === 'expired' ? 'approval_expired' : 'delivery_declined'
  const text = `Nothing was sent to ${delivery.source_name}: ${why}`
  return { kind: 'tool_result', data: { call_id, tool, ok: false, text, error } }
}

function toResultStep({ run }: AgentRun, call: DeliveryCall, result: DeliveryResult): NewJournalStep {
  const { id, source_id, source_name } = call.delivery
  const { outcome, status } = result
  const answer = result.answer === null ? null : toAnswerText(result.answer)
  const delivery: RecordedDelivery = { id, source_id, source_name, outcome, status, answer, reason: result.reason }
  return {
    kind: 'tool_result',
    data: {
      call_id: call.call_id,
      tool: call.tool,
      ok: outcome === 'accepted',
      text: describeForModel(delivery, run.sessionId),
      delivery,
    },
  }
}

/** The endpoint's answer on one line, at most ANSWER_MAX_LENGTH characters, without control and format characters. */
function toAnswerText(answer: string): string {
  const visible = answer.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
  return truncateText(visible.trim(), ANSWER_MAX_LENGTH)
}

/** Describes the result to the model, with what it may do next (contract README, "Deliveries"). */
function describeForModel({ outcome, status, reason, answer }: RecordedDelivery, sessionId: string): string {
  const text = answer === null ? '' : `\nThe endpoint's answer:\n${markUntrusted('endpoint answer', answer, sessionId)}`
  switch (outcome) {
    case 'accepted':
      return `Accepted: the endpoint answered ${status ?? 'with success'}.${text}`
    case 'rejected':
      return `Not accepted: the endpoint answered ${status ?? 'with a rejection'}. The payload is not sent again automatically; correct it and call the tool again only if that can help.${text}`
    case 'timed_out':
      return `The request failed: no answer within ${PAYLOAD_DEADLINE_MS / 1_000} seconds. The payload may have arrived nevertheless.`
    case 'unreachable':
      return `The request failed: the endpoint could not be reached, or gave no answer.${formatReason(reason)}`
    case 'refused':
      return `Nothing was sent.${formatReason(reason)}`
    case 'invalid':
      return `Nothing was sent.${formatReason(reason)} Correct the payload and call the tool again.`
    default:
      return 'The request failed: it was interrupted, and the payload may have arrived nevertheless.'
  }
}

/** Describes the result as part of a run's error message. */
export function formatDelivery({ source_name: name, outcome, status, reason }: RecordedDelivery): string {
  switch (outcome) {
    case 'accepted':
      return `${name} accepted the payload (${status ?? '2xx'})`
    case 'rejected':
      return `${name} did not accept the payload: it answered ${status ?? 'with a rejection'}`
    case 'timed_out':
      return `${name} did not answer within ${PAYLOAD_DEADLINE_MS / 1_000} seconds`
    case 'unreachable':
      return `${name} could not be reached.${formatReason(reason)}`
    case 'refused':
    case 'invalid':
      return `Nothing was sent to ${name}.${formatReason(reason)}`
    default:
      return `It is unknown whether ${name} received the payload: the request was interrupted`
  }
}

function formatReason(reason: string | null): string {
  return reason ? ` ${truncateText(reason, 2_000)}` : ''
}
