import { deleteWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'

/** Deletes a source and its secret; the log stays. 404 if it is already deleted. */
export function deleteSource(
  ctx: Pick<AppContext, 'db' | 'hints' | 'logger'>,
): InternalHandlers['deleteWebhookSource'] {
  return async ({ params, requestId }) => {
    const isDeleted = await deleteWebhookSource(ctx.db, params.organization_id, params.source_id)
    if (!isDeleted) throw notFound('Webhook source')
    ctx.hints.add(params.organization_id, 'webhook_sources')
    ctx.logger.info({ request_id: requestId, source_id: params.source_id }, 'webhook source deleted')
    return { status: 204 }
  }
}
