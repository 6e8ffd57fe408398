import { LIST_DEFAULT_LIMIT, type PageInfo } from '@workflow-service/contract'
import { listWorkflows as listWorkflowRows } from '@workflow-service/database'
import type { Static } from 'typebox'
import type { AppContext } from '../app-context.ts'
import { readListCursor, toListCursor } from '../list-cursor.ts'
import type { QueryRule } from '../check-request.ts'
import type { OperationHandlers } from '../mount-operations.ts'

/** A cursor must come from a page of the same list; how it is written is nobody's business but ours. */
export const checkListCursor: QueryRule = ({ cursor = '', search = '' }, { organizationId }) => {
  const isGood = cursor === '' || readListCursor(String(cursor), { organizationId, search: String(search) })
  if (isGood) return []
  const message = 'must be the next_cursor of a page of this list with the same search; omit it to begin anew'
  return [{ field: 'cursor', code: 'invalid_cursor', message }]
}

/** `GET /v1/workflows` (contract 4.2): a page, oldest first. The workflows' JSON is Postgres's, passed on as text. */
export function listWorkflows({
  db,
  workflows,
}: Pick<AppContext, 'db' | 'workflows'>): OperationHandlers['listWorkflows'] {
  return async ({ query, holder }) => {
    const { limit = LIST_DEFAULT_LIMIT, search = '', cursor = '' } = query
    const listed = { organizationId: holder.organizationId, search }
    const after = cursor === '' ? undefined : readListCursor(cursor, listed)
    const page = await listWorkflowRows(db, holder.organizationId, { limit, after, search })
    const documents = await workflows.findListed(holder.organizationId, page.workflows)
    const pagination: Static<typeof PageInfo> = {
      next_cursor: page.next && toListCursor(page.next, listed),
      has_more: page.next !== null,
    }
    return `{"data":[${documents.join(',')}],"pagination":${JSON.stringify(pagination)}}`
  }
}
