import { confirmWebhookSource, findWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { decryptSigningSecret } from '../sources/signing-secret.ts'
import { verifySource } from '../sources/verify-source.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { toDeliveryOut } from './to-wire.ts'

/** Verifies the stored values of a source and returns the delivery. A failure changes nothing. */
export function testSource(ctx: DispatcherContext): InternalHandlers['testWebhookSource'] {
  return async (request) => {
    const { params, requestId, trace } = request
    const { organization_id: organizationId, source_id: sourceId } = params
    const by = readActor(organizationId, request)
    const source = await findWebhookSource(ctx.db, organizationId, sourceId)
    if (!source) throw notFound('Webhook source')
    const { delivery, failure } = await verifySource(ctx, {
      organizationId,
      sourceId,
      targetUrl: source.endpointUrl,
      signingSecret: decryptSigningSecret(ctx.secrets, source),
      bodyExample: source.exampleRequestBody,
      requestId,
      trace,
      test: by && { by, sourceName: source.name },
    })
    if (!failure) {
      await confirmWebhookSource(ctx.db, organizationId, sourceId, source.version)
      ctx.hints.add(organizationId, 'webhook_sources')
    }
    return { status: 200, body: toDeliveryOut(delivery) }
  }
}
