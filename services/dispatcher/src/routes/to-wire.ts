import type { DeliveryOut, WebhookSourceOut } from '@workflow-service/contract'
import type { Delivery, WebhookSource } from '@workflow-service/database'

/** Returns the source as the internal API answers it, without its secret. */
export function toWebhookSourceOut(source: WebhookSource): WebhookSourceOut {
  return {
    id: source.id,
    organization_id: source.organizationId,
    name: source.name,
    description: source.description,
    endpoint_url: source.endpointUrl,
    has_signing_secret: source.hasSigningSecret,
    example_request_body: source.exampleRequestBody,
    created_at: source.createdAt.toISOString(),
    updated_at: source.updatedAt.toISOString(),
    verified_at: source.verifiedAt?.toISOString() ?? null,
    version: source.version,
    approval: source.approval,
    paused_at: source.pausedAt?.toISOString() ?? null,
  }
}

/** Returns the delivery as the internal API answers it. */
export function toDeliveryOut(delivery: Delivery): DeliveryOut {
  return {
    id: delivery.id,
    organization_id: delivery.organizationId,
    source_id: delivery.sourceId,
    kind: delivery.kind,
    outcome: delivery.outcome,
    status: delivery.status,
    reason: delivery.reason,
    mismatches: delivery.mismatches,
    duration_ms: delivery.durationMs,
    answer: delivery.answer,
    request_body: delivery.requestBody,
    session_id: delivery.sessionId,
    run_id: delivery.runId,
    request_id: delivery.requestId,
    created_at: delivery.createdAt.toISOString(),
    finished_at: delivery.finishedAt?.toISOString() ?? null,
    resend_of: delivery.resendOf,
    sent_by: delivery.sentBy,
  }
}
