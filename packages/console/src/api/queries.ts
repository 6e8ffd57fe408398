import {
  keepPreviousData,
  QueryCache,
  QueryClient,
  queryOptions,
  useInfiniteQuery,
  useQuery,
  type UseQueryResult,
} from '@tanstack/react-query'
import type { AppAnswer, AppOperationId, AppRequest, EventTopic } from '@workflow-service/contract'
import { AppError, call, type CallRequest, type RequestArgument } from './call.ts'
import { ask } from './prompts.ts'

/** The topics of hints after which an operation's answer is read again. The others are read every 30 s and on focus. */
const TOPICS: Partial<Record<AppOperationId, readonly EventTopic[]>> = {
  getMe: ['organization', 'users'],
  getOverview: ['runs', 'deliveries', 'webhook_sources', 'workflows', 'api_keys'],
  getOrganization: ['organization'],
  listUsers: ['users', 'workflows'],
  listWorkflows: ['workflows', 'runs'],
  getWorkflow: ['workflows', 'webhook_sources'],
  getFile: ['workflows'],
  getReadiness: ['workflows', 'webhook_sources', 'users'],
  listWebhookSources: ['webhook_sources', 'deliveries'],
  getWebhookSource: ['webhook_sources', 'deliveries'],
  listDeliveries: ['deliveries'],
  getDelivery: ['deliveries'],
  listRuns: ['runs'],
  getRun: ['runs', 'deliveries'],
  listSessions: ['sessions', 'runs'],
  getSession: ['sessions', 'runs'],
  listApiKeys: ['api_keys'],
}

const REFRESH_MS = 30_000

/** A sign-in that ended while the page is open is renewed in a dialog, so that nothing typed is lost. */
async function renewSignIn() {
  if (await ask('sign_in')) await queryClient.invalidateQueries()
}
function onError(error: Error) {
  if (error instanceof AppError && error.code === 'unauthorized' && queryClient.getQueryData(['getMe', {}])) {
    void renewSignIn()
  }
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchInterval: REFRESH_MS,
      refetchOnWindowFocus: 'always',
      retry: (failures, error) =>
        failures < 2 && error instanceof AppError && (error.status === 0 || error.status >= 500),
    },
  },
})

/** The options of a reading operation: its key is `[operation, request]`. */
export function read<Id extends AppOperationId>(id: Id, ...[request]: RequestArgument<Id>) {
  const sent = (request ?? {}) as CallRequest<Id>
  return queryOptions({ queryKey: [id, sent] as const, queryFn: ({ signal }) => call(id, sent, signal) })
}

/** An answer that is being read, was read or has failed. */
export type Query<Data> = Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>

/** Reads with an operation and keeps the answer current. */
export function useRead<Id extends AppOperationId>(id: Id, ...request: RequestArgument<Id>) {
  return useQuery(read(id, ...request))
}

/** The signed-in person. Only below the application's layout, which waits for it. */
export function useMe(): AppAnswer<'getMe'> {
  const { data } = useRead('getMe')
  if (!data) throw new Error('useMe is only available below the layout.')
  return data
}

/** Reads again what is shown of these topics. Resolves when it has been read. */
export async function refresh(topics?: readonly EventTopic[]): Promise<void> {
  await queryClient.invalidateQueries({
    predicate: ({ queryKey: [id, , part], state: { status } }) =>
      // The rows of a list stay where they are; its head finds new ones (`useList`).
      (part !== 'pages' || status === 'error') &&
      (!topics || topics.some((topic) => TOPICS[id as AppOperationId]?.includes(topic))),
  })
}

/** Calls an operation. One that needs a confirmation asks for the password, then runs again. */
export async function callConfirmed<Id extends AppOperationId>(
  id: Id,
  ...[request]: RequestArgument<Id>
): Promise<AppAnswer<Id>> {
  const sent = (request ?? {}) as CallRequest<Id>
  return await call(id, sent).catch(async (error: Error) => {
    onError(error)
    const canConfirm = error instanceof AppError && error.code === 'confirmation_required'
    if (!canConfirm || !(await ask('confirm'))) throw error
    return await call(id, sent)
  })
}

/** Changes something with an operation, then reads again everything shown: the page never shows old values after "Saved". */
export async function write<Id extends AppOperationId>(
  id: Id,
  ...request: RequestArgument<Id>
): Promise<AppAnswer<Id>> {
  const answer = await callConfirmed(id, ...request)
  await queryClient.invalidateQueries()
  return answer
}

type Page<Row> = { data: Row[]; pagination: { next_cursor: string | null; has_more: boolean } }
/** The operations that answer pages. */
type ListId = { [Id in AppOperationId]: AppAnswer<Id> extends Page<unknown> ? Id : never }[AppOperationId]
type RowOf<Id extends ListId> = AppAnswer<Id> extends Page<infer Row> ? Row : never

/** A list for `DataList`. */
export interface List<Row> {
  readonly rows: readonly Row[]
  readonly error: Error | null
  readonly isLoading: boolean
  readonly retry?: () => unknown
  /** Rows that are not shown yet; `Infinity` if there are more than a page of them. */
  readonly newCount?: number
  readonly showNew?: () => void
  /** Reads the next page; undefined on the last one. */
  readonly loadOlder?: (() => Promise<unknown>) | undefined
}

/**
 * Reads a list page by page. Its first page is read again and again: known rows are updated in their place, new ones are
 * counted until `showNew`.
 */
export function useList<Id extends ListId>(id: Id, ...[request]: RequestArgument<Id>): List<RowOf<Id>> {
  const sent = (request ?? {}) as CallRequest<Id> & { query?: AppRequest<ListId>['query' & keyof AppRequest<ListId>] }
  const readPage = async (cursor: string | undefined, signal: AbortSignal) => {
    const paged = { ...sent, query: { ...sent.query, cursor } } as CallRequest<Id>
    return (await call(id, paged, signal)) as Page<RowOf<Id> & { id: string }>
  }
  const pagesKey = [id, sent, 'pages'] as const
  const pages = useInfiniteQuery({
    queryKey: pagesKey,
    queryFn: ({ pageParam, signal }) => readPage(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.pagination.next_cursor ?? undefined,
    staleTime: REFRESH_MS,
    refetchInterval: false,
    refetchOnWindowFocus: false,
    placeholderData: keepPreviousData,
  })
  const firstPage = pages.isPlaceholderData ? undefined : pages.data?.pages[0]
  const head = useQuery({
    queryKey: [id, sent, 'head'] as const,
    queryFn: ({ signal }) => readPage(undefined, signal),
    enabled: firstPage !== undefined,
    initialData: firstPage,
    initialDataUpdatedAt: pages.dataUpdatedAt,
  })
  const headRows = head.data?.data ?? []
  const latest = new Map(headRows.map((row) => [row.id, row]))
  const shown = pages.data?.pages.flatMap((page) => page.data) ?? []
  const shownIds = new Set(shown.map((row) => row.id))
  const newCount = firstPage ? headRows.filter((row) => !shownIds.has(row.id)).length : 0
  const isHeadShown = shown.length === 0 && headRows.length > 0
  return {
    rows: isHeadShown ? headRows : shown.map((row) => latest.get(row.id) ?? row),
    error: pages.error,
    isLoading: pages.isPending,
    retry: () => pages.refetch(),
    newCount: isHeadShown ? 0 : newCount > 0 && newCount === headRows.length ? Infinity : newCount,
    showNew: () => {
      if (head.data) queryClient.setQueryData(pagesKey, { pages: [head.data], pageParams: [undefined] })
    },
    loadOlder: pages.hasNextPage ? () => pages.fetchNextPage() : undefined,
  }
}

/** An answer with all rows at once, as a list for `DataList`. */
export function toList<Row>(query: Query<{ data: Row[] }>): List<Row> {
  return {
    rows: query.data?.data ?? [],
    error: query.error,
    isLoading: query.data === undefined && !query.error,
    retry: () => query.refetch(),
  }
}
