import {
  type DeliveryIn,
  type FieldError,
  isDeeperThan,
  PAYLOAD_MAX_DEPTH,
  RUN_JOURNAL_HEADER,
} from '@workflow-service/contract'
import { toDeliveryStep } from '@workflow-service/contract/delivery-step'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { OperationResult } from '@workflow-service/service-kit'
import { deliverPayload } from '../deliveries/deliver-payload.ts'
import type { JournalUpdate, RecordedDelivery } from '../deliveries/outcome-recorder.ts'
import { resendPayload } from '../deliveries/resend-payload.ts'
import type { CallOf } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { toDeliveryOut } from './to-delivery-out.ts'

/** Sends a payload, or that of an earlier delivery again, at most once, and answers when its outcome is known. */
export function sendPayload(ctx: DispatcherContext) {
  return async (request: CallOf<'sendPayload'>): Promise<OperationResult> => {
    const { params, body, requestId, trace } = request
    const { organization_id: organizationId, source_id: sourceId, payload, resend_of: resendOf, lease } = body
    const common = { id: params.delivery_id, organizationId, requestId, trace }
    const by = readActor(organizationId, request, 'member')
    const delivery: RecordedDelivery =
      sourceId === undefined || payload === undefined
        ? await resendPayload(ctx, {
            ...common,
            sourceId,
            resendOf: String(resendOf),
            sentBy: body.sent_by ?? null,
            by,
          })
        : await deliverPayload(ctx, {
            ...common,
            sourceId,
            payload,
            runId: body.run_id ?? null,
            lease: lease ? { sessionId: lease.session_id.toLowerCase(), epoch: lease.epoch } : null,
            journal: toJournalUpdate(params.delivery_id, body),
            resend: null,
          })
    const { journalState } = delivery
    return {
      status: 200,
      body: toDeliveryOut(delivery),
      headers: journalState ? { [RUN_JOURNAL_HEADER]: journalState } : {},
    }
  }
}

function toJournalUpdate(
  deliveryId: string,
  { source_id: sourceId, run_id: runId, lease, journal }: DeliveryIn,
): JournalUpdate | null {
  if (!journal || !sourceId || !runId || !lease) return null
  const { call_id, tool, source_name, position, steps, last_of_run: lastOfRun } = journal
  const sessionId = lease.session_id.toLowerCase()
  const call = { call_id, tool, delivery: { id: deliveryId, source_id: sourceId, source_name } }
  return {
    runId,
    lease: { sessionId, epoch: lease.epoch },
    position,
    steps,
    lastOfRun,
    toStep: (result) => JSON.stringify(toDeliveryStep(sessionId, call, result).data),
  }
}

/**
 * Refuses a payload that is too deep to be compared or stored, and a body that is neither a new payload nor one to send
 * again. Other differences from the example are an outcome.
 */
export function checkDelivery(
  valid: Partial<DeliveryIn>,
  { violations }: { readonly violations: readonly FieldError[] },
): readonly FieldError[] {
  const { payload, resend_of: resendOf } = valid
  if (resendOf !== undefined) {
    const excluded = (['payload', 'run_id', 'lease', 'journal'] as const).filter(
      (field) => (valid[field] ?? null) !== null,
    )
    return excluded.map((field) => ({ field, code: 'extra_forbidden', message: 'must not be given with resend_of' }))
  }
  const invalid = new Set(violations.map(({ field }) => field))
  const errors: FieldError[] = (['source_id', 'payload'] as const)
    .filter((field) => valid[field] === undefined && !invalid.has(field) && !invalid.has('resend_of'))
    .map((field) => ({ field, code: 'missing', message: 'is required' }))
  for (const field of valid.journal ? (['run_id', 'lease'] as const) : []) {
    if (!valid[field] && !invalid.has(field)) {
      errors.push({ field, code: 'missing', message: 'is required with journal' })
    }
  }
  if (isDeeperThan(payload, PAYLOAD_MAX_DEPTH)) {
    const message = `must not nest objects and lists more than ${PAYLOAD_MAX_DEPTH} levels deep`
    errors.push({ field: 'payload', code: 'too_deep', message })
  }
  return errors
}
