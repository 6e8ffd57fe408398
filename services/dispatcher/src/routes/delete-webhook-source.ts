import { deleteWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'

/** Deletes a source and its secret; the log stays. 404 if it is already deleted. */
export function deleteSource(
  ctx: Pick<DispatcherContext, 'db' | 'hints' | 'logger'>,
): InternalHandlers['deleteWebhookSource'] {
  return async (request) => {
    const { params, requestId } = request
    const { organization_id: organizationId, source_id: sourceId } = params
    const by = readActor(organizationId, request)
    const isDeleted = await deleteWebhookSource(ctx.db, organizationId, sourceId, by)
    if (!isDeleted) throw notFound('Webhook source')
    ctx.hints.add(organizationId, 'webhook_sources')
    ctx.logger.info({ request_id: requestId, source_id: sourceId }, 'webhook_source.deleted')
    return { status: 204 }
  }
}
