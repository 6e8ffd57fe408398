import type { WebhookSourceOut } from '@workflow-service/contract'
import type { WebhookSource } from '@workflow-service/database'

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
