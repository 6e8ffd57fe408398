import { findWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { toWebhookSourceOut } from './to-wire.ts'

/** Returns a source. 404 also for a deleted source and one of another organization. */
export function getSource(ctx: Pick<DispatcherContext, 'db'>): InternalHandlers['getWebhookSource'] {
  return async ({ params }) => {
    const source = await findWebhookSource(ctx.db, params.organization_id, params.source_id)
    if (!source) throw notFound('Webhook source')
    return { status: 200, body: toWebhookSourceOut(source) }
  }
}
