import { type DeliveryIn, type FieldError, PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import type { AppContext } from '../app-context.ts'
import { deliverPayload } from '../deliveries/deliver-payload.ts'
import { isDeeperThan } from '../deliveries/is-deeper-than.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { toDeliveryOut } from './to-wire.ts'

/** Sends a payload at most once and answers when its outcome is known. */
export function sendPayload(ctx: AppContext): InternalHandlers['sendPayload'] {
  return async ({ params, body, requestId }) => {
    const delivery = await deliverPayload(ctx, {
      id: params.delivery_id,
      organizationId: body.organization_id,
      sourceId: body.source_id,
      payload: body.payload,
      runId: body.run_id ?? null,
      lease: body.lease ? { sessionId: body.lease.session_id.toLowerCase(), epoch: body.lease.epoch } : null,
      requestId,
    })
    return { status: 200, body: toDeliveryOut(delivery) }
  }
}

/** Refuses a payload that is too deep to be compared or stored. Other differences from the example are an outcome. */
export function checkPayloadDepth({ payload }: Partial<DeliveryIn>): readonly FieldError[] {
  if (!isDeeperThan(payload, PAYLOAD_MAX_DEPTH)) return []
  const message = `must not nest objects and lists more than ${PAYLOAD_MAX_DEPTH} levels deep`
  return [{ field: 'payload', code: 'too_deep', message }]
}
