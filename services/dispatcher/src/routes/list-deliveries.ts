import { type DeliveryPage, LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import { hasWebhookSourceLog, listDeliveries } from '@workflow-service/database'
import { byTime, decodeCursor, encodeCursor, invalidFields, notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { toDeliveryOut } from './to-wire.ts'

/** Returns a page of a source's log, newest first. The log of a deleted source stays readable. */
export function listSourceDeliveries(ctx: Pick<DispatcherContext, 'db'>): InternalHandlers['listDeliveries'] {
  return async ({ params, query }) => {
    const { limit = LIST_DEFAULT_LIMIT, cursor, outcome, kind, since, until } = query
    const { organization_id: organizationId, source_id: sourceId } = params
    const cursors = byTime(`deliveries ${organizationId} ${sourceId}`)
    // An empty cursor means the first page.
    const after = cursor ? decodeCursor(cursors, cursor) : undefined
    if (cursor && !after) {
      const message = 'is not the next_cursor of a page; omit it for the first page'
      throw invalidFields([{ field: 'cursor', code: 'invalid_cursor', message }])
    }
    const found = await listDeliveries(ctx.db, organizationId, {
      sourceId,
      outcome,
      kind,
      since: since === undefined ? undefined : new Date(since),
      until: until === undefined ? undefined : new Date(until),
      // One more than requested shows whether there is another page.
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
      pagination: { has_more: hasMore, next_cursor: hasMore && last ? encodeCursor(cursors, last) : null },
    }
    return { status: 200, body }
  }
}
