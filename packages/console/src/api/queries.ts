import {
  type InfiniteData,
  keepPreviousData,
  notifyManager,
  QueryCache,
  QueryClient,
  queryOptions,
  useInfiniteQuery,
  useQuery,
  type UseQueryResult,
} from '@tanstack/react-query'
import { useMemo } from 'react'
import type { AppOperationId, AppRequest, AppResponseBody, EventTopic } from '@workflow-service/contract'
import { LIST_MAX_LIMIT } from '@workflow-service/contract/limits'
import { AppError, call, type CallRequest, type RequestArgument } from './call.ts'
import { askForPassword } from './prompts.ts'

/**
 * The operations whose responses are read again after a change notice of the topic. The others are read every 30 s and
 * on focus.
 */
const READ_AFTER: Record<EventTopic, readonly AppOperationId[]> = {
  workflows: [
    'getOverview',
    'listUsers',
    'listWorkflows',
    'getWorkflow',
    'getFile',
    'listWorkflowVersions',
    'getWorkflowVersion',
    'listCases',
    'getCase',
    'listEvaluations',
    'getEvaluation',
    'getReadiness',
    'listSourceWorkflows',
  ],
  webhook_sources: [
    'getOverview',
    'getWorkflow',
    'getReadiness',
    'listWebhookSources',
    'getWebhookSource',
    'listSourceWorkflows',
  ],
  lookups: ['listLookups', 'getLookup'],
  deliveries: [
    'getOverview',
    'listWebhookSources',
    'getWebhookSource',
    'listDeliveries',
    'listAllDeliveries',
    'getDelivery',
    'listResendJobs',
    'getResendJob',
    'getRun',
  ],
  runs: [
    'getOverview',
    'listWorkflows',
    'getTrial',
    'listEvaluations',
    'getEvaluation',
    'listRuns',
    'getRun',
    'getRunPrompts',
    'countApprovals',
    'listApprovals',
    'listSessions',
    'getSession',
  ],
  sessions: ['listSessions', 'getSession'],
  api_keys: ['getOverview', 'listApiKeys'],
  users: ['getMe', 'listUsers', 'getReadiness'],
  organization: ['getMe', 'getOrganization', 'getInstructions', 'listModelKeys', 'getNotices', 'listModels'],
}

const REFRESH_MS = 30_000

/**
 * Renews a sign-in in a dialog, so that nothing typed is lost, if the error says that it ended while the page is open.
 * Resolves to whether that was so; the page is current then.
 */
async function renewSignIn(error: unknown): Promise<boolean> {
  const isUnauthorized = error instanceof AppError && error.code === 'unauthorized'
  const hasEnded = isUnauthorized && queryClient.getQueryData(['getMe', {}]) !== undefined
  if (hasEnded && (await askForPassword('sign_in'))) await queryClient.invalidateQueries()
  return hasEnded
}

/** Asks the server whether the sign-in has ended, and renews it then. */
export const renewEndedSignIn = async (): Promise<boolean> => await call('getMe', {}).then(() => false, renewSignIn)

// What was read is shown before those who wait for it go on: by default, after. The page never shows old values then.
notifyManager.setScheduler(queueMicrotask)

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error) => void renewSignIn(error) }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchInterval: REFRESH_MS,
      refetchOnWindowFocus: 'always',
      // A browser without a network may reach a server of its own machine. If not, the error says so.
      networkMode: 'always',
      refetchOnReconnect: true,
      retry: (failures, error) =>
        failures < 2 && error instanceof AppError && (error.status === 0 || error.status >= 500),
    },
  },
})

/** The options of a reading operation: its key is `[operation, request]`. */
export function queryFor<Id extends AppOperationId>(id: Id, ...[request]: RequestArgument<Id>) {
  const sent = (request ?? {}) as CallRequest<Id>
  return queryOptions({ queryKey: [id, sent] as const, queryFn: ({ signal }) => call(id, sent, signal) })
}

/** A response that is being read, was read or has failed. */
export type Query<Data> = Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>

/** Reads with an operation and keeps its response current. */
export function useRead<Id extends AppOperationId>(id: Id, ...request: RequestArgument<Id>) {
  return useQuery(queryFor(id, ...request))
}

/** The signed-in person. Only below the application's layout, which waits for it. */
export function useMe(): AppResponseBody<'getMe'> {
  const { data } = useRead('getMe')
  if (!data) throw new Error('useMe is only available below the layout.')
  return data
}

/** Reads again what is shown of these topics. Resolves when it has been read. */
export async function refresh(topics?: readonly EventTopic[]): Promise<void> {
  // A service of a later release may name topics that a page which was opened before the upgrade does not know.
  const readAfter: Partial<typeof READ_AFTER> = READ_AFTER
  await queryClient.invalidateQueries({
    predicate: ({ queryKey: [id, , part], state: { status } }) =>
      // The rows of a list stay where they are; its head finds new ones (`useList`).
      (part !== 'pages' || status === 'error') &&
      (!topics || topics.some((topic) => readAfter[topic]?.includes(id as AppOperationId))),
  })
}

/** Calls an operation. One that needs a confirmation asks for the password, then runs again. */
export async function callConfirmed<Id extends AppOperationId>(
  id: Id,
  ...[request]: RequestArgument<Id>
): Promise<AppResponseBody<Id>> {
  const sent = (request ?? {}) as CallRequest<Id>
  return await call(id, sent).catch(async (error: Error) => {
    void renewSignIn(error)
    const canConfirm = error instanceof AppError && error.code === 'confirmation_required'
    if (!canConfirm || !(await askForPassword('confirm'))) throw error
    return await call(id, sent)
  })
}

/**
 * Changes something with an operation, then reads again everything shown: the page never shows old values after
 * "Saved".
 */
export async function mutate<Id extends AppOperationId>(
  id: Id,
  ...request: RequestArgument<Id>
): Promise<AppResponseBody<Id>> {
  const response = await callConfirmed(id, ...request)
  await queryClient.invalidateQueries()
  return response
}

type Page<Row> = { data: Row[]; pagination: { next_cursor: string | null; has_more: boolean } }
/** The operations that respond with pages. */
type ListId = { [Id in AppOperationId]: AppResponseBody<Id> extends Page<unknown> ? Id : never }[AppOperationId]
type RowOf<Id extends ListId> = AppResponseBody<Id> extends Page<infer Row> ? Row : never

/** Whether a row has ended, so that it is not read again. The rows of other lists change only by hand. */
const HAS_ENDED: { readonly [Id in ListId]?: (row: RowOf<Id>) => boolean } = {
  listRuns: ({ finished_at: at }) => at !== null,
  listAllDeliveries: ({ outcome }) => outcome !== 'in_flight',
  listSessions: ({ is_open: isOpen, waiting_count: waiting }) => !isOpen && waiting === 0,
  // A workflow runs again.
  listWorkflows: () => false,
}

/** A list for `DataList`. */
export interface List<Row> {
  readonly rows: readonly Row[]
  readonly error: Error | null
  readonly isLoading: boolean
  /** Whether the rows are those of the filters before. */
  readonly isOld?: boolean
  readonly retry?: () => unknown
  /** Rows that are not shown yet; `Infinity` if there are more than a page of them. */
  readonly newCount?: number
  /** Returns the id of the first of them. */
  readonly showNew?: () => string | undefined
  /** Reads the next page, and resolves to all rows then; undefined on the last one. */
  readonly loadOlder?: (() => Promise<readonly Row[]>) | undefined
}

/**
 * Reads a list page by page. Its first page is read again and again, and so are the shown rows outside of it that have
 * not ended: known rows are updated in their place, new ones are counted until `showNew`.
 */
export function useList<Id extends ListId>(id: Id, ...[request]: RequestArgument<Id>): List<RowOf<Id>> {
  type Row = RowOf<Id> & { id: string }
  type Pages = InfiniteData<Page<Row>, string | undefined>
  const sent = (request ?? {}) as CallRequest<Id> & { query?: AppRequest<ListId>['query' & keyof AppRequest<ListId>] }
  const readPage = async (query: { cursor?: string | undefined; ids?: string }, signal: AbortSignal) => {
    const paged = { ...sent, query: { ...sent.query, ...query } } as CallRequest<Id>
    return (await call(id, paged, signal)) as Page<Row>
  }
  const pagesKey = [id, sent, 'pages'] as const
  const pages = useInfiniteQuery({
    queryKey: pagesKey,
    queryFn: ({ pageParam, signal }) => readPage({ cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.pagination.next_cursor ?? undefined,
    staleTime: REFRESH_MS,
    refetchInterval: false,
    refetchOnWindowFocus: false,
    placeholderData: keepPreviousData,
  })
  /**
   * Updates the shown rows: from the new first page, and those that have not ended by their ids. A row that is gone is
   * removed.
   */
  async function updateRows({ data: first, pagination }: Page<Row>, signal: AbortSignal) {
    const latest = new Map<string, Row | undefined>(first.map((row) => [row.id, row]))
    const before = queryClient.getQueryData<Pages>(pagesKey)?.pages.flatMap(({ data }) => data) ?? []
    const left = before.filter((row) => !latest.has(row.id) && HAS_ENDED[id]?.(row) === false).map((row) => row.id)
    // A row that only a person changes, and that the first page lacks, was removed, or is elsewhere in the list now.
    const last = first.findLast((row) => before.some((each) => each.id === row.id))?.id
    const end = pagination.has_more ? before.findIndex((row) => row.id === last) : before.length
    if (!HAS_ENDED[id] && before.slice(0, Math.max(end, 0)).some((row) => !latest.has(row.id))) {
      return await queryClient.refetchQueries({ queryKey: pagesKey, exact: true }, { cancelRefetch: false })
    }
    for (let at = 0; at < left.length; at += LIST_MAX_LIMIT) {
      const ids = left.slice(at, at + LIST_MAX_LIMIT)
      const { data } = await readPage({ ids: ids.join(',') }, signal)
      for (const each of ids) latest.set(each, undefined)
      for (const row of data) latest.set(row.id, row)
    }
    const update = (row: Row) => (latest.has(row.id) ? (latest.get(row.id) ?? []) : row)
    queryClient.setQueryData<Pages>(
      pagesKey,
      (shown) =>
        shown && { ...shown, pages: shown.pages.map((page) => ({ ...page, data: page.data.flatMap(update) })) },
      // The rows in between are as old as before.
      { updatedAt: queryClient.getQueryState(pagesKey)?.dataUpdatedAt },
    )
  }
  const firstPage = pages.isPlaceholderData ? undefined : pages.data?.pages[0]
  const head = useQuery({
    queryKey: [id, sent, 'head'] as const,
    async queryFn({ signal }) {
      const page = await readPage({}, signal)
      await updateRows(page, signal)
      return page
    },
    enabled: firstPage !== undefined,
    initialData: firstPage,
    initialDataUpdatedAt: pages.dataUpdatedAt,
  })
  const headRows = head.data?.data ?? []
  const shown = useMemo(() => pages.data?.pages.flatMap((page) => page.data) ?? [], [pages.data])
  const shownIds = new Set(shown.map((row) => row.id))
  const newCount = firstPage ? headRows.filter((row) => !shownIds.has(row.id)).length : 0
  const isHeadShown = shown.length === 0 && headRows.length > 0
  return {
    rows: isHeadShown ? headRows : shown,
    error: pages.error,
    isOld: pages.isPlaceholderData,
    isLoading: pages.isPending || (pages.isPlaceholderData && shown.length === 0),
    retry: () => pages.refetch(),
    newCount: isHeadShown ? 0 : newCount > 0 && newCount === headRows.length ? Infinity : newCount,
    showNew: () => {
      if (head.data) queryClient.setQueryData(pagesKey, { pages: [head.data], pageParams: [undefined] })
      return headRows[0]?.id
    },
    loadOlder: pages.hasNextPage
      ? async () => (await pages.fetchNextPage()).data?.pages.flatMap(({ data }) => data) ?? []
      : undefined,
  }
}

/** A response with all rows at once, as a list for `DataList`. */
export function toList<Row>(query: Query<{ data: Row[] }>): List<Row> {
  return {
    rows: query.data?.data ?? [],
    error: query.error,
    isLoading: query.data === undefined && !query.error,
    retry: () => query.refetch(),
  }
}
