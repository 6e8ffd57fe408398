import { deleteWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { OperationHandlers } from '../mount-operations.ts'

/** `DELETE …/webhook-sources/{s}`: the secret goes at once, the log stays. 404 when it is deleted already. */
export function deleteSource(ctx: Pick<AppContext, 'db' | 'logger'>): OperationHandlers['deleteWebhookSource'] {
  return async ({ params, requestId }) => {
    const isDeleted = await deleteWebhookSource(ctx.db, params.organization_id, params.source_id)
    if (!isDeleted) throw notFound('Webhook source')
    ctx.logger.info({ request_id: requestId, source_id: params.source_id }, 'webhook source deleted')
    return { status: 204 }
  }
}
