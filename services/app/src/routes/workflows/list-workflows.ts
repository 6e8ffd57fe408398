import { LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import { decodeListCursor, encodeListCursor, listWorkflowRows, viewerOf } from '@workflow-service/database'
import type { AppContext } from '../../app-context.ts'
import type { AppHandlers, AppRules } from '../app-handlers.ts'

/** Requires the cursor to come from a page of the same list. */
export const listWorkflowsRules: NonNullable<AppRules['listWorkflows']> = {
  query: ({ cursor = '', search = '' }, { principal: { organizationId } }) => {
    if (cursor === '' || decodeListCursor(cursor, { organizationId, search })) return []
    const message = 'must be the next_cursor of a page of this list with the same search; omit it to begin anew'
    return [{ field: 'cursor', code: 'invalid_cursor', message }]
  },
}

/** Lists the workflows that the person sees, with their last runs. */
export function listWorkflows({ db }: Pick<AppContext, 'db'>): AppHandlers['listWorkflows'] {
  return async ({ query, principal }) => {
    const { limit = LIST_DEFAULT_LIMIT, search = '', cursor = '' } = query
    const scope = { organizationId: principal.organizationId, search }
    const after = cursor === '' ? undefined : decodeListCursor(cursor, scope)
    const { rows, next } = await listWorkflowRows(db, viewerOf(principal), {
      limit,
      after,
      search,
    })
    const pagination = { has_more: next !== undefined, next_cursor: next ? encodeListCursor(next, scope) : null }
    return { status: 200, body: { data: [...rows], pagination } }
  }
}
