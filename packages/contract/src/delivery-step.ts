import type { DeliveryOutcome } from './enumerations.ts'
import type { JournaledDelivery, ToolCallStep, ToolResultStep } from './journal.ts'
import { ANSWER_MAX_LENGTH, PAYLOAD_DEADLINE_MS } from './limits.ts'
import { truncateText } from './schema/text.ts'
import { markUntrusted } from './untrusted-text.ts'

/** What became of a delivery, as the journal has it. */
export interface DeliveredResult extends Pick<JournaledDelivery, 'status' | 'answer' | 'reason'> {
  readonly outcome: Exclude<DeliveryOutcome, 'in_flight'>
}

/** The tool call of a delivery. */
export interface DeliveredCall extends Pick<ToolCallStep, 'call_id' | 'tool'> {
  readonly delivery: Pick<NonNullable<ToolCallStep['delivery']>, 'id' | 'source_id' | 'source_name'>
}

/**
 * Returns the step that records the result of a delivery (contract README, "The journal"). The dispatcher writes it
 * with the outcome; the runner writes it where the dispatcher did not.
 */
export function toDeliveryStep(
  sessionId: string,
  call: DeliveredCall,
  result: DeliveredResult,
): { kind: 'tool_result'; data: ToolResultStep } {
  const { id, source_id, source_name } = call.delivery
  const { outcome, status, reason } = result
  const answer = result.answer === null ? null : toAnswerText(result.answer)
  const delivery: JournaledDelivery = { id, source_id, source_name, outcome, status, answer, reason }
  const text = describeForModel(delivery, sessionId)
  return {
    kind: 'tool_result',
    data: { call_id: call.call_id, tool: call.tool, ok: outcome === 'accepted', text, delivery },
  }
}

/** The endpoint's answer on one line, at most ANSWER_MAX_LENGTH characters, without control and format characters. */
function toAnswerText(answer: string): string {
  const visible = answer.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
  return truncateText(visible.trim(), ANSWER_MAX_LENGTH)
}

/** Describes the result to the model, with what it may do next (contract README, "Deliveries"). */
function describeForModel({ outcome, status, reason, answer }: JournaledDelivery, sessionId: string): string {
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

/** Returns the reason as the end of a sentence. */
export function formatReason(reason: string | null): string {
  return reason ? ` ${truncateText(reason, 2_000)}` : ''
}
