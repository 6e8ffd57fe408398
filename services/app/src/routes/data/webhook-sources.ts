import type { AppWebhookSourceOut } from '@workflow-service/contract'
import {
  listSourcesWithLastRequests,
  saveWebhookSourceSettings,
  viewerOf,
  listSourceStates,
  listWorkflowsMentioning,
} from '@workflow-service/database'
import { checkWorkflow } from '@workflow-service/rules/check-workflow'
import { ApiError, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { type Principal, toInternal } from '../../auth/principal.ts'
import type { AppHandlers, AppRequestOf } from '../app-handlers.ts'
import { changedMeanwhile } from '../changed-meanwhile.ts'

/** Workflows that name a source, in one answer. */
const MAX_WORKFLOWS = 20

type SaveRequest = AppRequestOf<'saveWebhookSource'>

/**
 * Handlers of the webhook sources. The dispatcher verifies, saves, tests and deletes them: it has the key of their
 * secrets.
 */
export function webhookSourceHandlers(ctx: AppServiceContext) {
  return {
    listWebhookSources: async ({ principal }) => ({
      body: { data: await listSourcesWithLastRequests(ctx.db, viewerOf(principal)) },
    }),
    getWebhookSource: async ({ principal, params }) => ({ body: await readSource(ctx, principal, params.source_id) }),
    listSourceWorkflows: async ({ principal, params }) => {
      const { id, name } = await readSource(ctx, principal, params.source_id)
      const states = await listSourceStates(ctx.db, principal.organizationId)
      const data = []
      for (const workflow of await listWorkflowsMentioning(ctx.db, viewerOf(principal), name)) {
        const { sources } = await checkWorkflow(workflow, states)
        const { id: workflowId, name: workflowName, is_active } = workflow
        if (sources.some((source) => source.id === id)) data.push({ id: workflowId, name: workflowName, is_active })
        if (data.length === MAX_WORKFLOWS) break
      }
      return { body: { data } }
    },
    saveWebhookSource: (request) => saveSource(ctx, request),
    saveWebhookSourceSettings: (request) => saveSettings(ctx, request),
    deleteWebhookSource: async ({ principal, params, requestId }) => {
      await ctx.dispatcher.call('deleteWebhookSource', { ...toInternal(principal, params), requestId })
      return { status: 204 }
    },
    testWebhookSource: async ({ principal, params, requestId }) => {
      const source = await readSource(ctx, principal, params.source_id)
      const delivery = await ctx.dispatcher.call('testWebhookSource', { ...toInternal(principal, params), requestId })
      return { body: { ...delivery, source_name: source.name, workflow: null, resent_as: [], sent_by: null } }
    },
    pauseWebhookSource: (request) => pause(ctx, request, 'pauseWebhookSource'),
    resumeWebhookSource: (request) => pause(ctx, request, 'resumeWebhookSource'),
  } satisfies Partial<AppHandlers>
}

/** Pauses or resumes a source. @throws ApiError 404 */
async function pause(
  ctx: AppServiceContext,
  { principal, params, requestId }: AppRequestOf<'pauseWebhookSource'>,
  operation: 'pauseWebhookSource' | 'resumeWebhookSource',
): Promise<{ body: AppWebhookSourceOut }> {
  await ctx.dispatcher.call(operation, { ...toInternal(principal, params), requestId })
  return { body: await readSource(ctx, principal, params.source_id) }
}

/** @throws ApiError 404 */
async function readSource(
  ctx: AppServiceContext,
  principal: Principal,
  sourceId: string,
): Promise<AppWebhookSourceOut> {
  const [source] = await listSourcesWithLastRequests(ctx.db, viewerOf(principal), sourceId)
  return orNotFound(source, 'Webhook source')
}

/**
 * Lets the dispatcher verify and save a source. The dispatcher's refusals reach the page unchanged, except that another
 * version than the edited one is `changed_meanwhile` with the current source.
 */
async function saveSource(ctx: AppServiceContext, request: SaveRequest): Promise<{ body: AppWebhookSourceOut }> {
  const { principal, params, body, requestId } = request
  const { version, ...values } = body
  try {
    await ctx.dispatcher.call('saveWebhookSource', {
      ...toInternal(principal, params),
      query: { version: toInternalVersion(version) },
      body: values,
      requestId,
    })
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'source_changed') throw error
    const [current] = await listSourcesWithLastRequests(ctx.db, viewerOf(principal), params.source_id)
    throw changedMeanwhile(current, error)
  }
  return { body: await readSource(ctx, principal, params.source_id) }
}

/**
 * Saves the settings that the endpoint does not confirm: they need neither a request to it nor the key of the secret.
 */
async function saveSettings(
  ctx: AppServiceContext,
  request: AppRequestOf<'saveWebhookSourceSettings'>,
): Promise<{ body: AppWebhookSourceOut }> {
  const { principal, params, body } = request
  const { version, ...settings } = body
  const { organizationId } = principal
  const seenVersion = toInternalVersion(version)
  const saved = await saveWebhookSourceSettings(
    ctx.db,
    organizationId,
    params.source_id,
    settings,
    seenVersion,
    request,
  )
  const source = await readSource(ctx, principal, params.source_id)
  if (saved.kind === 'changed_meanwhile') throw changedMeanwhile(source)
  if (saved.kind === 'saved') ctx.changeNotices.add(organizationId, 'webhook_sources')
  return { body: source }
}

/** A version that is not an integer is never the stored one. */
export function toInternalVersion(version: string | null): number {
  if (version === null) return 0
  return /^[1-9]\d{0,8}$/.test(version) ? Number(version) : 2_147_483_647
}
