import {
  notifyManager,
  type Query as StoredQuery,
  QueryCache,
  QueryClient,
  queryOptions,
  useQuery,
  type UseQueryResult,
} from '@tanstack/react-query'
import type { AppOperationId, AppResponseBody, EventTopic } from '@workflow-service/contract'
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

/** How often what is shown is read again, changed or not. */
export const REFRESH_MS = 30_000

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

/** Whether the signed-in person is an admin or an owner. */
export const useIsAdmin = (): boolean => useMe().role !== 'member'

/** Reads again what is shown of these topics. Resolves when it has been read. */
export async function refresh(topics?: readonly EventTopic[]): Promise<void> {
  // A service of a later release may name topics that a page which was opened before the upgrade does not know.
  const readAfter: Partial<typeof READ_AFTER> = READ_AFTER
  await readAgain(
    ({ queryKey: [id, , part], state: { status } }) =>
      // The rows of a list stay where they are; its head finds new ones (`useList`).
      (part !== 'pages' || status !== 'success') &&
      (!topics || topics.some((topic) => readAfter[topic]?.includes(id as AppOperationId))),
  )
}

/** The first read of a query is not begun anew, unlike later ones: what it reads may be older than the change. */
async function readAgain(isMeant: (query: StoredQuery) => boolean): Promise<void> {
  const begun = new Set(
    queryClient.getQueryCache().findAll({
      fetchStatus: 'fetching',
      predicate: (query) => query.state.data === undefined && isMeant(query),
    }),
  )
  await queryClient.invalidateQueries({ predicate: isMeant })
  if (begun.size === 0) return
  await queryClient.invalidateQueries({ predicate: (query) => begun.has(query) && query.state.status === 'success' })
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
  await readAgain(() => true)
  return response
}
