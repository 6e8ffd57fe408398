import type { DeliveryOut, TraceContext } from '@workflow-service/contract'
import {
  type AuditedBy,
  findDeliveryState,
  findFirstSent,
  hasApproval,
  isDeliveryIdOfRun,
} from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { deliverPayload, idempotencyConflict, notResendable } from './deliver-payload.ts'

/** A payload delivery to send again under a new id. */
export interface ResendRequest {
  id: string
  organizationId: string
  /** If given, the earlier delivery must be of this source. */
  sourceId: string | undefined
  resendOf: string
  /** The user who sends it again. */
  sentBy: string | null
  requestId: string
  trace: TraceContext | null
  /** For the audit event. */
  by: AuditedBy | undefined
}

/**
 * Sends the payload of an earlier delivery again, at most once for its id. Implements contract README, "Internal API"
 * (sending a payload again).
 * @throws ApiError 404 if the organization has no such delivery, 409 `not_resendable`, `idempotency_conflict` for the
 *   id of a run's payload, and those of `deliverPayload`.
 */
export async function resendPayload(ctx: DispatcherContext, request: ResendRequest): Promise<DeliveryOut> {
  const { id, organizationId, resendOf, sentBy, requestId, trace, by } = request
  // The record of a repeated call has all that the earlier delivery has, which may be deleted meanwhile.
  const recorded = await findDelivery(ctx, id)
  const earlier =
    recorded?.organization_id === organizationId && recorded.resend_of === resendOf
      ? recorded
      : await findResendable(ctx, request)
  return await deliverPayload(ctx, {
    id,
    organizationId,
    sourceId: earlier.source_id,
    payload: earlier.request_body,
    runId: earlier.run_id,
    lease: null,
    resend: {
      of: resendOf,
      firstId: await findFirstSent(ctx.db, resendOf),
      sentBy,
      sessionId: earlier.session_id,
      by,
    },
    requestId,
    trace,
  })
}

async function findResendable(
  ctx: DispatcherContext,
  { id, organizationId, sourceId, resendOf }: ResendRequest,
): Promise<DeliveryOut> {
  // People see the id of a run's payload before it is sent. The ids of runs of 1.0.0 are no UUIDs of version 8
  // (RFC 9562): they are known only by their approvals.
  if (isDeliveryIdOfRun(id) || (await hasApproval(ctx.db, id))) throw idempotencyConflict()
  const earlier = await findDelivery(ctx, resendOf)
  const isFound = earlier?.organization_id === organizationId && (sourceId ?? earlier.source_id) === earlier.source_id
  if (!isFound) throw notFound('Delivery')
  if (earlier.kind === 'verification') throw notResendable('it is a verification request')
  if (earlier.outcome === 'in_flight') throw notResendable('its outcome is not known yet')
  return earlier
}

async function findDelivery(ctx: DispatcherContext, id: string): Promise<DeliveryOut | undefined> {
  return ctx.outcomes.find(id) ?? (await findDeliveryState(ctx.db, id))?.delivery
}
