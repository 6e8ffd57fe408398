import { LIST_DEFAULT_LIMIT, type PageInfo } from '@workflow-service/contract'
import { listWorkflows as listWorkflowRows } from '@workflow-service/database'
import type { Static } from 'typebox'
import type { AppContext } from '../app-context.ts'
import { decodeListCursor, encodeListCursor } from '../workflows/list-cursor.ts'
import type { PublicApiHandlers, PublicApiRules } from './operation-handlers.ts'

/** Requires the cursor to come from a page of the same list. */
export const listWorkflowsRules: PublicApiRules<'listWorkflows'> = {
  query: ({ cursor = '', search = '' }, { principal: { organizationId } }) => {
    if (cursor === '' || decodeListCursor(cursor, { organizationId, search })) return []
    const message = 'must be the next_cursor of a page of this list with the same search; omit it to begin anew'
    return [{ field: 'cursor', code: 'invalid_cursor', message }]
  },
}

/** `GET /v1/workflows` (contract README, "Pagination and search"): a page, oldest first. */
export function listWorkflows({
  db,
  workflows,
}: Pick<AppContext, 'db' | 'workflows'>): PublicApiHandlers['listWorkflows'] {
  return async ({ query, principal: { organizationId } }) => {
    const { limit = LIST_DEFAULT_LIMIT, search = '', cursor = '' } = query
    const scope = { organizationId, search }
    const after = cursor === '' ? undefined : decodeListCursor(cursor, scope)
    const page = await listWorkflowRows(db, organizationId, { limit, after, search })
    const documents = await workflows.findListed(organizationId, page.workflows)
    const pagination: Static<typeof PageInfo> = {
      next_cursor: page.next && encodeListCursor(page.next, scope),
      has_more: page.next !== null,
    }
    return `{"data":[${documents.join(',')}],"pagination":${JSON.stringify(pagination)}}`
  }
}
