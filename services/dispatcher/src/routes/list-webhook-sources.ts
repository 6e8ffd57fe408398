import type { WebhookSourceList } from '@workflow-service/contract'
import { listWebhookSources } from '@workflow-service/database'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { toWebhookSourceOut } from './to-wire.ts'

/** Returns all sources of an organization. An unknown organization has none. */
export function listSources(ctx: Pick<DispatcherContext, 'db'>): InternalHandlers['listWebhookSources'] {
  return async ({ params }) => {
    const sources = await listWebhookSources(ctx.db, params.organization_id)
    const body: WebhookSourceList = { data: sources.map(toWebhookSourceOut) }
    return { status: 200, body }
  }
}
