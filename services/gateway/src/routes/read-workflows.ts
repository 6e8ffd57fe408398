import { LIST_DEFAULT_LIMIT, LIST_PAGE_MAX_BYTES, type OPERATIONS } from '@workflow-service/contract'
import { listWorkflows as listWorkflowRows, type Principal } from '@workflow-service/database'
import {
  type ApiError,
  byTime,
  decodeCursor,
  notFound,
  type OperationRules,
  readCursor,
  serviceUnavailable,
  toPageInfo,
} from '@workflow-service/service-kit'
import { type GatewayContext, LIST_WAIT_MS } from '../gateway-context.ts'
import { joinJson } from '../workflows/workflow-documents.ts'
import type { PublicApiHandlers } from './operation-handlers.ts'

const cursorsOf = (organizationId: string, search: string) => byTime(`workflows ${organizationId} ${search}`)

/** Requires the cursor to come from a page of the same list. */
export const listWorkflowsRules: OperationRules<typeof OPERATIONS.listWorkflows, Principal> = {
  query: ({ cursor = '', search = '' }, { principal: { organizationId } }) => {
    if (cursor === '' || decodeCursor(cursorsOf(organizationId, search), cursor)) return []
    const message = 'must be the next_cursor of a page of this list with the same search; omit it to begin anew'
    return [{ field: 'cursor', code: 'invalid_cursor', message }]
  },
}

/** `GET /v1/workflows/{workflow_id}`: 404 for a missing workflow and for one of another organization. */
export function getWorkflow({ workflows }: Pick<GatewayContext, 'workflows'>): PublicApiHandlers['getWorkflow'] {
  return async ({ params, principal }) => {
    const document = await workflows.find(principal.organizationId, params.workflow_id)
    if (document === null) throw notFound('Workflow')
    return joinJson(document)
  }
}

/** `GET /v1/workflows` (contract README, "Pagination and search"): a page, oldest first. */
export function listWorkflows({
  db,
  workflows,
  listSlots,
  pageSlots,
}: Pick<GatewayContext, 'db' | 'workflows' | 'listSlots' | 'pageSlots'>): PublicApiHandlers['listWorkflows'] {
  return async ({ query, principal: { organizationId }, onceAnswered }) => {
    const { limit = LIST_DEFAULT_LIMIT, search = '', cursor } = query
    const cursors = cursorsOf(organizationId, search)
    const after = readCursor(cursors, cursor)
    const startedMs = performance.now()
    const releasePage = await pageSlots.acquire(organizationId)
    if (typeof releasePage === 'string') throw tooManyLists()
    onceAnswered(releasePage)
    const readPage = async () => {
      const page = await listWorkflowRows(db, { organizationId, memberId: null }, { limit, after, search })
      const { documents, count } = await workflows.findListed(organizationId, page.workflows, LIST_PAGE_MAX_BYTES)
      const hasMore = page.hasMore || count < page.workflows.length
      const last = page.workflows[count - 1]
      const pagination = toPageInfo(cursors, hasMore ? last : undefined)
      const data = documents.flatMap((document, index) => (index === 0 ? document : [',', ...document]))
      return joinJson(['{"data":[', ...data, `],"pagination":${JSON.stringify(pagination)}}`])
    }
    const waitMs = LIST_WAIT_MS - (performance.now() - startedMs)
    return await listSlots.run(organizationId, readPage, { waitMs, refuse: tooManyLists })
  }
}

function tooManyLists(): ApiError {
  return serviceUnavailable('Too many lists are being read at the moment; try again in a moment.')
}
