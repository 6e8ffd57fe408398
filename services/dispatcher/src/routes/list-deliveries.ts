import type { DeliveryPage } from '@workflow-service/contract'
import { hasWebhookSourceLog, listDeliveries } from '@workflow-service/database'
import { invalidFields, notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import { readDeliveryCursor, toDeliveryCursor } from '../delivery-cursor.ts'
import type { OperationHandlers } from '../mount-operations.ts'
import { toDeliveryOut } from '../to-wire.ts'

/** `GET …/webhook-sources/{s}/deliveries`: the log, newest first; a deleted source's too. */
export function listSourceDeliveries(ctx: Pick<AppContext, 'db'>): OperationHandlers['listDeliveries'] {
  return async ({ params, query }) => {
    const { limit = 25, cursor, outcome, kind, since, until } = query
    const after = cursor ? readDeliveryCursor(cursor) : undefined
    if (cursor && !after) {
      throw invalidFields([
        {
          field: 'cursor',
          code: 'invalid_cursor',
          message: 'is not the next_cursor of a page; omit it to start at the top',
        },
      ])
    }
    const { organization_id: organizationId, source_id: sourceId } = params
    const found = await listDeliveries(ctx.db, organizationId, {
      sourceId,
      outcome,
      kind,
      since: since === undefined ? undefined : new Date(since),
      until: until === undefined ? undefined : new Date(until),
      // One more than asked for tells whether there is a further page.
      limit: limit + 1,
      after,
    })
    if (found.length === 0 && !(await hasWebhookSourceLog(ctx.db, organizationId, sourceId))) {
      throw notFound('Webhook source')
    }
    const page = found.slice(0, limit)
    const last = page.at(-1)
    const hasMore = found.length > limit
    const body: DeliveryPage = {
      data: page.map(toDeliveryOut),
      pagination: { has_more: hasMore, next_cursor: hasMore && last ? toDeliveryCursor(last) : null },
    }
    return { status: 200, body }
  }
}
