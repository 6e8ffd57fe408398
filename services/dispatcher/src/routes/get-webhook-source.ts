import { findWebhookSource } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { OperationHandlers } from '../mount-operations.ts'
import { toWebhookSourceOut } from '../to-wire.ts'

/** `GET …/webhook-sources/{s}`: 404 also for a deleted source and another organization's. */
export function getSource(ctx: Pick<AppContext, 'db'>): OperationHandlers['getWebhookSource'] {
  return async ({ params }) => {
    const source = await findWebhookSource(ctx.db, params.organization_id, params.source_id)
    if (!source) throw notFound('Webhook source')
    return { status: 200, body: toWebhookSourceOut(source) }
  }
}
