import { confirmWebhookSource, findWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { OperationHandlers } from '../mount-operations.ts'
import { openSecret } from '../open-secret.ts'
import { toDeliveryOut } from '../to-wire.ts'
import { verifySource } from '../verify-source.ts'

/** `POST …/webhook-sources/{s}/test`: a save of what is stored, whose failure changes nothing and is told as an outcome. */
export function testSource(ctx: AppContext): OperationHandlers['testWebhookSource'] {
  return async ({ params, requestId }) => {
    const { organization_id: organizationId, source_id: sourceId } = params
    const source = await findWebhookSource(ctx.db, organizationId, sourceId)
    if (!source) throw notFound('Webhook source')
    const { delivery, fault } = await verifySource(ctx, {
      organizationId,
      sourceId,
      targetUrl: source.endpointUrl,
      signingSecret: openSecret(ctx.secrets, source),
      bodyExample: source.exampleRequestBody,
      requestId,
    })
    if (!fault) await confirmWebhookSource(ctx.db, organizationId, sourceId, source.version)
    return { status: 200, body: toDeliveryOut(delivery) }
  }
}
