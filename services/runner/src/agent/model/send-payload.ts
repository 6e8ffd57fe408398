import { listEditedPayloads, type ToolCallPart } from '@workflow-service/contract'
import { newDeliveryId } from '@workflow-service/database'
import { type AgentSteps, indexToolResults, listData, refuseCall } from '../agent-steps.ts'
import type { DeliveryCall } from '../agent.ts'
import { isDeliveryCall, isSamePayload, mayHaveArrived, sendDelivery } from '../deliveries.ts'
import type { ModelRun } from './model-run.ts'
import { readSendAgain, SEND_AGAIN } from './model-tools.ts'

type Delivery = DeliveryCall['delivery']

/** The deliveries that may have arrived, and whose payload the source has not accepted since. */
export function listUncertain(all: AgentSteps['all']): DeliveryCall[] {
  const sent = listSent(all)
  const accepted = sent.filter(isAccepted)
  return sent.flatMap(({ call, result }) =>
    mayHaveArrived(result) && !accepted.some((other) => isSame(call.delivery, other.call.delivery)) ? [call] : [],
  )
}

/** Sends the payload of a tool call. */
export async function deliver(ctx: ModelRun, part: ToolCallPart, sourceId: string): Promise<void> {
  if (await resumeDelivery(ctx, part)) return
  // As they were when the model answered.
  const { source_name = '', payload = part.arguments as Record<string, unknown> } = part
  await send(ctx, part, { id: newDeliveryId(), source_id: sourceId, source_name, payload })
}

/** Sends the payload of an earlier delivery again, because the model says so and why. */
export async function sendAgain(ctx: ModelRun, part: ToolCallPart): Promise<void> {
  const { steps, log } = ctx
  if (await resumeDelivery(ctx, part)) return
  const again = readSendAgain(part.arguments)
  const earlier = listUncertain(steps.all).find(({ delivery }) => delivery.id === again?.delivery_id)
  if (!again || !earlier) {
    const ids = listUncertain(steps.all).map(({ delivery }) => delivery.id)
    const text = `Nothing was sent: delivery_id must be one of ${ids.join(', ') || 'no delivery at present'}, and reason must be a text that is not empty.`
    return await refuseCall(steps, part, 'may_have_arrived', text)
  }
  const id = newDeliveryId()
  log('info', 'delivery.sent_again', { delivery_id: id, earlier_delivery_id: again.delivery_id, reason: again.reason })
  await send(ctx, part, { ...earlier.delivery, id, send_again: again })
}

/** Continues a delivery that is in the journal. Resolves to whether it is. */
async function resumeDelivery({ run, steps }: ModelRun, { call_id }: ToolCallPart): Promise<boolean> {
  const call = listPlannedDeliveries(steps.all).find((planned) => planned.call_id === call_id)
  if (call) await sendDelivery(run, steps, call)
  return call !== undefined
}

/**
 * Plans the payload with its delivery id, and sends it, unless the source has accepted the same one before in the run,
 * or it may have arrived there: then only `sendAgain` sends it (docs/agents.md, "No payload is sent twice by
 * accident"). Nothing is sent either once the run may send no more.
 */
async function send({ run, steps, config }: ModelRun, part: ToolCallPart, delivery: Delivery): Promise<void> {
  const { source_name: name } = delivery
  const same = listSent(steps.all).filter((sent) => isRepeated(sent, delivery))
  if (same.some(isAccepted)) {
    const text = `Nothing was sent: ${name} has accepted the same payload before in this run.`
    return await refuseCall(steps, part, 'duplicate_payload', text)
  }
  const uncertain = delivery.send_again ? undefined : same.find(({ result }) => mayHaveArrived(result))
  if (uncertain) {
    const text = `Nothing was sent: the same payload may have arrived at ${name} before in this run, with the delivery ${uncertain.call.delivery.id}. To send it although the endpoint may then act twice, call ${SEND_AGAIN} with that delivery_id and a reason. Otherwise go on, and end the run as failed.`
    return await refuseCall(steps, part, 'may_have_arrived', text)
  }
  if (listPlannedDeliveries(steps.all).length >= config.maxDeliveries) {
    const text = `Nothing was sent: this run has reached its limit of ${config.maxDeliveries} payloads. It cannot send more; end the run and say what is left undone.`
    return await refuseCall(steps, part, 'too_many_deliveries', text)
  }
  const call = { call_id: part.call_id, tool: part.tool, delivery }
  steps.plan({ kind: 'tool_call', data: call })
  await sendDelivery(run, steps, call)
}

type Sent = ReturnType<typeof listSent>[number]

/** The deliveries with a result: as the model asked for them, and as they were sent: a person may change a payload. */
function listSent(all: AgentSteps['all']) {
  const [results, edited] = [indexToolResults(all), listEditedPayloads(all)]
  return listPlannedDeliveries(all).flatMap((asked) => {
    const result = results.get(asked.call_id)?.delivery
    const payload = edited.get(asked.call_id)
    const call = payload ? { ...asked, delivery: { ...asked.delivery, payload } } : asked
    return result ? [{ asked, call, result }] : []
  })
}

function isAccepted({ result }: Sent): boolean {
  return result.outcome === 'accepted'
}

/** Whether the delivery is what the model asked for before, or what was sent in its place. */
function isRepeated({ asked, call }: Sent, next: Delivery): boolean {
  return isSame(asked.delivery, next) || isSame(call.delivery, next)
}

/** Whether both send the same payload to the same source. */
function isSame(a: Delivery, b: Delivery): boolean {
  return a.source_id === b.source_id && isSamePayload(a.payload, b.payload)
}

/** The deliveries in the journal, sent or about to be. */
function listPlannedDeliveries(all: AgentSteps['all']): DeliveryCall[] {
  return listData(all, 'tool_call').filter(isDeliveryCall)
}
