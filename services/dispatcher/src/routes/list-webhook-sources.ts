import type { WebhookSourceList } from '@workflow-service/contract'
import { listWebhookSources } from '@workflow-service/database'
import type { AppContext } from '../app-context.ts'
import type { OperationHandlers } from '../mount-operations.ts'
import { toWebhookSourceOut } from '../to-wire.ts'

/** `GET …/webhook-sources`: an organization that does not exist has none. */
export function listSources(ctx: Pick<AppContext, 'db'>): OperationHandlers['listWebhookSources'] {
  return async ({ params }) => {
    const sources = await listWebhookSources(ctx.db, params.organization_id)
    const body: WebhookSourceList = { data: sources.map(toWebhookSourceOut) }
    return { status: 200, body }
  }
}
