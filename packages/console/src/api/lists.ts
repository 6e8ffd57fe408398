import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { AppOperationId, AppRequest, AppResponseBody } from '@workflow-service/contract'
import { LIST_MAX_LIMIT } from '@workflow-service/contract/limits'
import { call, type CallRequest, type RequestArgument } from './call.ts'
import { type Query, queryClient, REFRESH_MS } from './queries.ts'

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
