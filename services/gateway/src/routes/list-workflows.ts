import { LIST_DEFAULT_LIMIT, type PageInfo } from '@workflow-service/contract'
import { listWorkflows as listWorkflowRows } from '@workflow-service/database'
import type { Static } from 'typebox'
import type { AppContext } from '../app-context.ts'
import { readListCursor, toListCursor } from '../list-cursor.ts'
import type { PublicApiHandlers, PublicApiRules } from '../operation-handlers.ts'

/** Requires the cursor to come from a page of the same list; its encoding is opaque and may change. */
export const checkListCursor: NonNullable<PublicApiRules<'listWorkflows'>['query']> = (
  { cursor = '', search = '' },
  { principal: { organizationId } },
) => {
  const isGood = cursor === '' || readListCursor(cursor, { organizationId, search })
  if (isGood) return []
  const message = 'must be the next_cursor of a page of this list with the same search; omit it to begin anew'
  return [{ field: 'cursor', code: 'invalid_cursor', message }]
}

/** `GET /v1/workflows` (contract 4.2): a page, oldest first. The workflows' JSON is Postgres's, passed on as text. */
export function listWorkflows({
  db,
  workflows,
}: Pick<AppContext, 'db' | 'workflows'>): PublicApiHandlers['listWorkflows'] {
  return async ({ query, principal }) => {
    const { limit = LIST_DEFAULT_LIMIT, search = '', cursor = '' } = query
    const listed = { organizationId: principal.organizationId, search }
    const after = cursor === '' ? undefined : readListCursor(cursor, listed)
    const page = await listWorkflowRows(db, principal.organizationId, { limit, after, search })
    const documents = await workflows.findListed(principal.organizationId, page.workflows)
    const pagination: Static<typeof PageInfo> = {
      next_cursor: page.next && toListCursor(page.next, listed),
      has_more: page.next !== null,
    }
    return `{"data":[${documents.join(',')}],"pagination":${JSON.stringify(pagination)}}`
  }
}
