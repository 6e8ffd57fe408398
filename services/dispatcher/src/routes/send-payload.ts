import { compile, DeliveryIn, PAYLOAD_MAX_DEPTH, toFieldErrors } from '@workflow-service/contract'
import { invalidFields } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import { deliverPayload } from '../deliver-payload.ts'
import { isDeeperThan } from '../is-deeper-than.ts'
import type { OperationHandlers } from '../mount-operations.ts'
import { toDeliveryOut } from '../to-wire.ts'

const checkShape = compile(DeliveryIn)
const FIELD_ORDER = Object.keys(DeliveryIn.properties)

/** `PUT /internal/deliveries/{d}`: sends once, answers when the outcome is known. */
export function sendPayload(ctx: AppContext): OperationHandlers['sendPayload'] {
  return async ({ params, body, requestId }) => {
    const request = validateDelivery(body)
    const delivery = await deliverPayload(ctx, {
      id: params.delivery_id,
      organizationId: request.organization_id.toLowerCase(),
      sourceId: request.source_id.toLowerCase(),
      payload: request.payload,
      runId: request.run_id?.toLowerCase() ?? null,
      lease: request.lease ? { sessionId: request.lease.session_id.toLowerCase(), epoch: request.lease.epoch } : null,
      requestId,
    })
    return { status: 200, body: toDeliveryOut(delivery) }
  }
}

/** What does not follow the example is an outcome; what cannot even be compared or stored is a fault of the request. */
function validateDelivery(body: unknown): DeliveryIn {
  if (!checkShape(body)) throw invalidFields(toFieldErrors(checkShape.errors ?? [], FIELD_ORDER))
  if (isDeeperThan(body.payload, PAYLOAD_MAX_DEPTH)) {
    const message = `must not nest objects and lists more than ${PAYLOAD_MAX_DEPTH} levels deep`
    throw invalidFields([{ field: 'payload', code: 'too_deep', message }])
  }
  return body
}
