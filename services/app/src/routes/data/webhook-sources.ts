import {
  deleteLookup,
  findSourceWithLastRequests,
  listLookups,
  listSourcesWithLastRequests,
  listSourceStates,
  listWorkflowsMentioning,
  saveWebhookSourceSettings,
} from '@workflow-service/database'
import { checkWorkflow } from '@workflow-service/rules/check-workflow'
import { ApiError, notFound, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { type Principal, toInternal } from '../../auth/principal.ts'
import { countEndpointRequest } from '../../endpoint-quota.ts'
import { type AppHandlers, type AppRequestOf, changedMeanwhile } from '../app-handlers.ts'

/** Workflows that name a source, in one response. */
const MAX_WORKFLOWS = 20

/**
 * Handlers of the webhook sources. The dispatcher verifies, saves, tests and deletes them: it has the key of their
 * secrets.
 */
export function webhookSourceHandlers(ctx: AppServiceContext) {
  const { db, dispatcher, changeNotices } = ctx
  const find = (principal: Principal, id: string) => findSourceWithLastRequests(db, principal, id)
  /** @throws ApiError 404 */
  const read = async (principal: Principal, id: string) => orNotFound(await find(principal, id), 'Webhook source')
  const setPaused =
    (operation: 'pauseWebhookSource' | 'resumeWebhookSource') =>
    async ({ principal, params, requestId }: AppRequestOf<'pauseWebhookSource' | 'resumeWebhookSource'>) => {
      await dispatcher.call(operation, { ...toInternal(principal, params), requestId })
      return await read(principal, params.source_id)
    }
  return {
    listWebhookSources: async ({ principal }) => ({ data: await listSourcesWithLastRequests(db, principal) }),
    getWebhookSource: ({ principal, params }) => read(principal, params.source_id),
    listSourceWorkflows: async ({ principal, params }) => {
      const { id, name } = await read(principal, params.source_id)
      const states = await listSourceStates(db, principal.organizationId)
      const data = []
      for (const workflow of await listWorkflowsMentioning(db, principal, name)) {
        const { sources } = await checkWorkflow(workflow, states)
        const { id: workflowId, name: workflowName, is_active } = workflow
        if (sources.some((source) => source.id === id)) data.push({ id: workflowId, name: workflowName, is_active })
        if (data.length === MAX_WORKFLOWS) break
      }
      return { data }
    },
    saveWebhookSource: async ({ principal, params, body: { version, ...values }, requestId }) => {
      const query = { version: toInternalVersion(version) }
      const call = { ...toInternal(principal, params), query, body: values, requestId }
      const confirm = await countEndpointRequest(ctx, principal.organizationId)
      await dispatcher.call('saveWebhookSource', call).catch(throwWithCurrent(() => find(principal, params.source_id)))
      confirm()
      return await read(principal, params.source_id)
    },
    /** Saves what the endpoint does not confirm: that needs neither a request to it nor the key of the secret. */
    saveWebhookSourceSettings: async (request) => {
      const { principal, params } = request
      const { organizationId } = principal
      const settings = { ...request.body, version: toInternalVersion(request.body.version) }
      const saved = await saveWebhookSourceSettings(db, organizationId, params.source_id, settings, request)
      const source = await read(principal, params.source_id)
      if (saved.kind === 'changed_meanwhile') throw changedMeanwhile(source)
      if (saved.kind === 'saved') changeNotices.add(organizationId, 'webhook_sources')
      return source
    },
    deleteWebhookSource: async ({ principal, params, requestId }) =>
      void (await dispatcher.call('deleteWebhookSource', { ...toInternal(principal, params), requestId })),
    testWebhookSource: async ({ principal, params, requestId }) => {
      const source = await read(principal, params.source_id)
      await countEndpointRequest(ctx, principal.organizationId)
      const delivery = await dispatcher.call('testWebhookSource', { ...toInternal(principal, params), requestId })
      return { ...delivery, source_name: source.name, workflow: null, resent_as: [], sent_by: null }
    },
    pauseWebhookSource: setPaused('pauseWebhookSource'),
    resumeWebhookSource: setPaused('resumeWebhookSource'),
  } satisfies Partial<AppHandlers>
}

/** Handlers of the look-ups. The dispatcher saves and calls them: it has the key of their secrets. */
export function lookupHandlers(ctx: AppServiceContext) {
  const { db, dispatcher, changeNotices } = ctx
  const read = async (organizationId: string, id?: string) =>
    (await listLookups(db, organizationId, id)).map((lookup) => ({ ...lookup, version: String(lookup.version) }))
  return {
    listLookups: async ({ principal }) => ({ data: await read(principal.organizationId) }),
    getLookup: async ({ principal, params }) =>
      orNotFound((await read(principal.organizationId, params.lookup_id))[0], 'Look-up'),
    saveLookup: async ({ principal, params, body: { version, ...values }, requestId }) => {
      const query = { version: toInternalVersion(version) }
      const call = { ...toInternal(principal, params), query, body: values, requestId }
      // The server is asked for its tools.
      const confirm = values.kind === 'mcp' ? await countEndpointRequest(ctx, principal.organizationId) : undefined
      const saved = await dispatcher
        .call('saveLookup', call)
        .catch(throwWithCurrent(async () => (await read(principal.organizationId, params.lookup_id))[0]))
      confirm?.()
      return { ...saved, version: String(saved.version) }
    },
    deleteLookup: async (request) => {
      if (!(await deleteLookup(db, request.params.lookup_id, request))) throw notFound('Look-up')
      changeNotices.add(request.principal.organizationId, 'lookups')
    },
    testLookup: async ({ principal, params, body, requestId }) => {
      await countEndpointRequest(ctx, principal.organizationId)
      return await dispatcher.call('callLookup', { ...toInternal(principal, params), body, requestId })
    },
  } satisfies Partial<AppHandlers>
}

/** Throws the dispatcher's refusal unchanged, except that a stale version is answered with the thing as it is now. */
function throwWithCurrent(find: () => Promise<object | undefined>) {
  return async (error: unknown): Promise<never> => {
    if (!(error instanceof ApiError) || error.code !== 'source_changed') throw error
    throw changedMeanwhile(await find(), error)
  }
}

/** A version that is not an integer is never the stored one. */
function toInternalVersion(version: string | null): number {
  if (version === null) return 0
  return /^[1-9]\d{0,8}$/.test(version) ? Number(version) : 2_147_483_647
}
