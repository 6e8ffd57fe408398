import {
  confirmWebhookSource,
  deleteWebhookSource,
  findStoredSource,
  findWebhookSource,
  hasWebhookSourceLog,
  listDeliveries,
  listWebhookSources,
  operatorOf,
  setSourcePaused,
  wakePausedSessions,
} from '@workflow-service/database'
import { byTime, notFound, orNotFound, pageResponse, toDate } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { decryptSigningSecret } from '../stored-secrets.ts'
import { inVerificationSlot, verifySource } from '../sources/verify-source.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'
import { checkSource, saveSource } from './save-webhook-source.ts'
import { toDeliveryOut } from './to-delivery-out.ts'

/** Handlers of the webhook sources and of their logs. */
export function sourceHandlers(ctx: DispatcherContext) {
  const { db, changeNotices } = ctx

  /** Runs that wait go on at once after a resume, more than 1,000 within 15 s. */
  const setPaused =
    (isPaused: boolean): InternalHandlers['pauseWebhookSource'] =>
    async (request) => {
      const { organization_id: organizationId, source_id: sourceId } = request.params
      const by = readActor(organizationId, request) ?? operatorOf(organizationId)
      if (!(await setSourcePaused(db, sourceId, isPaused, by))) throw notFound('Webhook source')
      if (!isPaused) await wakePausedSessions(db)
      changeNotices.add(organizationId, 'webhook_sources', 'runs')
      return { status: 204 }
    }

  return {
    saveWebhookSource: saveSource(ctx),
    checkWebhookSource: checkSource(ctx),
    /** An unknown organization has none. */
    listWebhookSources: async ({ params }) => ({
      status: 200,
      body: { data: await listWebhookSources(db, params.organization_id) },
    }),
    /** 404 also for a deleted source and one of another organization. */
    getWebhookSource: async ({ params }) => {
      const source = await findWebhookSource(db, params.organization_id, params.source_id)
      return { status: 200, body: orNotFound(source, 'Webhook source') }
    },
    /** The secret is deleted, too; the log stays, and runs that wait for the source go on. */
    deleteWebhookSource: async (request) => {
      const { params, requestId } = request
      const { organization_id: organizationId, source_id: sourceId } = params
      const by = readActor(organizationId, request)
      if (!(await deleteWebhookSource(db, organizationId, sourceId, by))) throw notFound('Webhook source')
      await wakePausedSessions(db)
      changeNotices.add(organizationId, 'webhook_sources', 'runs', 'sessions')
      ctx.logger.info({ request_id: requestId, source_id: sourceId }, 'webhook_source.deleted')
      return { status: 204 }
    },
    pauseWebhookSource: setPaused(true),
    resumeWebhookSource: setPaused(false),
    /** Verifies the stored values and returns the delivery. A failure changes nothing. */
    testWebhookSource: async (request) => {
      const { params, requestId, trace } = request
      const { organization_id: organizationId, source_id: sourceId } = params
      const by = readActor(organizationId, request)
      return await inVerificationSlot(ctx, sourceId, async () => {
        const stored = orNotFound(await findStoredSource(db, organizationId, sourceId), 'Webhook source')
        const { source } = stored
        const { delivery, failure } = await verifySource(ctx, {
          organizationId,
          sourceId,
          targetUrl: source.endpoint_url,
          signingSecret: decryptSigningSecret(ctx.secrets, stored),
          bodyExample: source.example_request_body,
          requestId,
          trace,
          test: by && { by, sourceName: source.name },
        })
        if (!failure) {
          await confirmWebhookSource(db, organizationId, sourceId, source.version)
          changeNotices.add(organizationId, 'webhook_sources')
        }
        return { status: 200, body: toDeliveryOut(delivery) }
      })
    },
    /** A page of the log, newest first. That of a deleted source stays readable. */
    listDeliveries: async ({ params, query }) => {
      const { outcome, kind } = query
      const { organization_id: organizationId, source_id: sourceId } = params
      const filter = { sourceId, outcome, kind, since: toDate(query.since), until: toDate(query.until) }
      const { data, pagination } = await pageResponse(
        query,
        byTime(`deliveries ${organizationId} ${sourceId}`),
        (page) => listDeliveries(db, organizationId, { ...filter, ...page }),
      )
      if (data.length === 0 && !(await hasWebhookSourceLog(db, organizationId, sourceId))) {
        throw notFound('Webhook source')
      }
      return { status: 200, body: { data: data.map(toDeliveryOut), pagination } }
    },
  } satisfies Partial<InternalHandlers>
}
