import { type DeliveryPage, LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import { hasWebhookSourceLog, listDeliveries } from '@workflow-service/database'
import { byTime, decodeCursor, encodeCursor, invalidFields, notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'

/** Returns a page of a source's log, newest first. The log of a deleted source stays readable. */
export function listSourceDeliveries(ctx: Pick<DispatcherContext, 'db'>): InternalHandlers['listDeliveries'] {
  return async ({ params, query }) => {
    const { limit = LIST_DEFAULT_LIMIT, cursor, since, until, ...filters } = query
    const { organization_id: organizationId, source_id: sourceId } = params
    const cursors = byTime(`deliveries ${organizationId} ${sourceId}`)
    // An empty cursor means the first page.
    const after = cursor ? decodeCursor(cursors, cursor) : undefined
    if (cursor && !after) {
      const message = 'is not the next_cursor of a page; omit it for the first page'
      throw invalidFields([{ field: 'cursor', code: 'invalid_cursor', message }])
    }
    const { rows, next } = await listDeliveries(ctx.db, organizationId, {
      ...filters,
      sourceId,
      since: since === undefined ? undefined : new Date(since),
      until: until === undefined ? undefined : new Date(until),
      limit,
      after,
    })
    if (rows.length === 0 && !(await hasWebhookSourceLog(ctx.db, organizationId, sourceId))) {
      throw notFound('Webhook source')
    }
    const body: DeliveryPage = {
      data: rows.map(({ rejected_answer: _forPeople, answer_headers: _forPeopleToo, ...delivery }) => delivery),
      pagination: { has_more: next !== undefined, next_cursor: next ? encodeCursor(cursors, next) : null },
    }
    return { status: 200, body }
  }
}
