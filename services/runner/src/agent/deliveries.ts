import {
  ANSWER_MAX_LENGTH,
  type JournalStep,
  type NewJournalStep,
  PAYLOAD_DEADLINE_MS,
  type ToolCallStep,
  type ToolResultStep,
  truncateText,
} from '@workflow-service/contract'
import type { AgentRun } from './agent.ts'
import { markUntrusted } from './untrusted-text.ts'

/** The steps that a journal may hold of a planned delivery. */
export type PlannedDelivery = NonNullable<ToolCallStep['delivery']>

/** What came of a delivery, in the journal's words. */
export type DeliveryRecord = NonNullable<ToolResultStep['delivery']>

/** A tool call of the journal that sends a payload. */
export interface DeliveryCall extends ToolCallStep {
  readonly delivery: PlannedDelivery
}

export function isDeliveryCall(call: ToolCallStep): call is DeliveryCall {
  return call.delivery !== undefined
}

/**
 * Sends the payload of a journaled tool call and returns the step that records what came of it. The call's id makes it
 * safe to do again after a crash: the answer is then what was recorded.
 */
export async function sendDelivery(run: AgentRun, call: DeliveryCall): Promise<NewJournalStep> {
  const { id, source_id, source_name, payload } = call.delivery
  const result = await run.deliver({ deliveryId: id, sourceId: source_id, payload })
  const { outcome, status } = result
  const answer = result.answer === null ? null : toAnswerText(result.answer)
  const delivery: DeliveryRecord = { id, source_id, source_name, outcome, status, answer, reason: result.reason }
  const isAccepted = outcome === 'accepted'
  return {
    kind: 'tool_result',
    data: { call_id: call.call_id, tool: call.tool, ok: isAccepted, text: describeForModel(delivery), delivery },
  }
}

/** The calls of the journal whose results it does not hold, in order. */
export function unansweredCalls(steps: readonly (JournalStep | NewJournalStep)[]): ToolCallStep[] {
  const answered = new Set(steps.flatMap((step) => (step.kind === 'tool_result' ? [step.data.call_id] : [])))
  return steps.flatMap((step) => (step.kind === 'tool_call' && !answered.has(step.data.call_id) ? [step.data] : []))
}

/** The contract's answer text (4.5, rule 6) without anything that could pass for layout or control. */
function toAnswerText(answer: string): string {
  const visible = answer.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
  return truncateText(visible.trim(), ANSWER_MAX_LENGTH)
}

/** What the contract's answer handling (4.5) tells the agent, in words that say what to do next. */
function describeForModel({ outcome, status, reason, answer }: DeliveryRecord): string {
  const text = answer === null ? '' : `\nThe endpoint's answer:\n${markUntrusted('endpoint answer', answer)}`
  switch (outcome) {
    case 'accepted':
      return `Accepted: the endpoint answered ${status ?? 'with success'}.${text}`
    case 'rejected':
      return `Not accepted: the endpoint answered ${status ?? 'with a rejection'}. Nothing is sent again by itself; correct the payload and call the tool again only if that can help.${text}`
    case 'timed_out':
      return `The request failed: no answer within ${PAYLOAD_DEADLINE_MS / 1_000} seconds. The payload may have arrived nevertheless.`
    case 'unreachable':
      return `The request failed: the endpoint could not be reached.${because(reason)}`
    case 'refused':
      return `Nothing was sent.${because(reason)}`
    case 'invalid':
      return `Nothing was sent.${because(reason)} Correct the payload and call the tool again.`
    default:
      return 'The request failed: it was interrupted, and the payload may have arrived nevertheless. Sending it again may deliver it twice.'
  }
}

/** What came of a delivery in a few words about the source: the error of a run, a line of a story. */
export function describeOutcome({ source_name: name, outcome, status, reason }: DeliveryRecord): string {
  switch (outcome) {
    case 'accepted':
      return `${name} accepted the payload (${status ?? '2xx'})`
    case 'rejected':
      return `${name} did not accept the payload: it answered ${status ?? 'with a rejection'}`
    case 'timed_out':
      return `${name} did not answer within ${PAYLOAD_DEADLINE_MS / 1_000} seconds`
    case 'unreachable':
      return `${name} could not be reached.${because(reason)}`
    case 'refused':
    case 'invalid':
      return `Nothing was sent to ${name}.${because(reason)}`
    default:
      return `It is unknown whether ${name} received the payload: the request was interrupted`
  }
}

function because(reason: string | null): string {
  return reason ? ` ${truncateText(reason, 2_000)}` : ''
}
