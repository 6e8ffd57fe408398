import { createHash } from 'node:crypto'
import {
  APPROVAL_DAYS,
  canonicalJson,
  type JournaledDelivery,
  PAYLOAD_DEADLINE_MS,
  type ToolCallStep,
} from '@workflow-service/contract'
import { formatReason, toDeliveryStep } from '@workflow-service/contract/delivery-step'
import type { ApprovalState, PayloadToApprove } from '@workflow-service/database'
import { type AgentSteps, listPendingCalls, refuseCall } from './agent-steps.ts'
import type { AgentRun, DeliveryCall } from './agent.ts'

/** Whether the payload may have arrived, although the endpoint gave no answer (contract README, "Deliveries"). */
export function mayHaveArrived({ outcome }: Pick<JournaledDelivery, 'outcome'>): boolean {
  return ['timed_out', 'unreachable', 'unknown'].includes(outcome)
}

const digests = new WeakMap<object, string>()

/**
 * Whether both are the same JSON, irrespective of the order of the fields. Each payload is read once: comparing fifty
 * large ones with each other held up the process for seconds.
 */
export function isSamePayload(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  return digestOf(a) === digestOf(b)
}

function digestOf(payload: Record<string, unknown>): string {
  const digest = digests.get(payload) ?? createHash('sha256').update(canonicalJson(payload)).digest('hex')
  digests.set(payload, digest)
  return digest
}

export function isDeliveryCall(call: ToolCallStep): call is DeliveryCall {
  return call.delivery !== undefined
}

/**
 * Sends the payload of a tool call that is planned or in the journal, and records the result. Safe to repeat after a
 * crash: a second call with the same delivery id gives the recorded result. Parks the run while the payload waits for
 * an approval.
 * @param isLast Whether the run succeeds if the payload is accepted.
 */
export async function sendDelivery(
  run: AgentRun,
  steps: AgentSteps,
  call: DeliveryCall,
  isLast = false,
): Promise<void> {
  const { id } = call.delivery
  let isRequested = steps.all.some((step) => step.kind === 'approval_request' && step.data.delivery_id === id)
  for (;;) {
    const approval = isRequested ? await readDecision(run, steps, call) : undefined
    if (approval?.status === 'declined' || approval?.status === 'expired') {
      return await withhold(steps, call, approval)
    }
    if (approval?.status !== 'waiting') {
      const edited = approval?.payload && { ...call, delivery: { ...call.delivery, payload: approval.payload } }
      const result = await run.deliver(edited ?? call, isLast)
      if (result.outcome !== 'approval_required') {
        const step = toDeliveryStep(run.sessionId, call, result)
        return result.journal ? steps.adopt(step) : await steps.append(step)
      }
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
    const { status: decision, decidedBy: decided_by, reason, payload } = approval
    const data = { call_id: call.call_id, delivery_id: id, decision, decided_by, reason, ...(payload && { payload }) }
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

/** Records the result of a payload that a person declined, or that expired. */
async function withhold(steps: AgentSteps, call: DeliveryCall, approval: ApprovalState): Promise<void> {
  const { status, decidedBy, reason } = approval
  const why =
    status === 'expired'
      ? `no person approved the payload within ${APPROVAL_DAYS} days`
      : `${decidedBy ?? 'A person'} declined the payload${reason === null ? '' : `: ${reason}`}`
  const error = status === 'expired' ? 'approval_expired' : 'delivery_declined'
  await refuseCall(steps, call, error, `Nothing was sent to ${call.delivery.source_name}: ${why}`)
}

/** Describes the result as part of a run's error message. */
export function formatDelivery({ source_name: name, outcome, status, reason }: JournaledDelivery): string {
  switch (outcome) {
    case 'accepted':
      return `${name} accepted the payload (${status ?? '2xx'})`
    case 'rejected':
      return `${name} did not accept the payload: it answered ${status ?? 'with a rejection'}`
    case 'timed_out':
      return `${name} did not answer within ${PAYLOAD_DEADLINE_MS / 1_000} seconds`
    case 'unreachable':
      return `${name} could not be reached, or gave no valid answer.${formatReason(reason)}`
    case 'refused':
    case 'invalid':
      return `Nothing was sent to ${name}.${formatReason(reason)}`
    default:
      return `It is unknown whether ${name} received the payload: the request was interrupted`
  }
}
