import {
  confirmWebhookSource,
  deleteWebhookSource,
  findStoredSource,
  findWebhookSource,
  listWebhookSources,
  operatorOf,
  setSourcePaused,
  wakePausedSessions,
} from '@workflow-service/database'
import { notFound, orNotFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { decryptSigningSecret } from '../sources/signing-secret.ts'
import { verifySource } from '../sources/verify-source.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'

/** Returns all sources of an organization. An unknown organization has none. */
export function listSources(ctx: Pick<DispatcherContext, 'db'>): InternalHandlers['listWebhookSources'] {
  return async ({ params }) => {
    return { status: 200, body: { data: await listWebhookSources(ctx.db, params.organization_id) } }
  }
}

/** Returns a source. 404 also for a deleted source and one of another organization. */
export function getSource(ctx: Pick<DispatcherContext, 'db'>): InternalHandlers['getWebhookSource'] {
  return async ({ params }) => {
    const source = await findWebhookSource(ctx.db, params.organization_id, params.source_id)
    return { status: 200, body: orNotFound(source, 'Webhook source') }
  }
}

/** Deletes a source and its secret; the log stays, and runs that wait for it go on. 404 if it is already deleted. */
export function deleteSource(
  ctx: Pick<DispatcherContext, 'db' | 'changeNotices' | 'logger'>,
): InternalHandlers['deleteWebhookSource'] {
  return async (request) => {
    const { params, requestId } = request
    const { organization_id: organizationId, source_id: sourceId } = params
    const by = readActor(organizationId, request)
    const isDeleted = await deleteWebhookSource(ctx.db, organizationId, sourceId, by)
    if (!isDeleted) throw notFound('Webhook source')
    await wakePausedSessions(ctx.db)
    ctx.changeNotices.add(organizationId, 'webhook_sources', 'runs')
    ctx.logger.info({ request_id: requestId, source_id: sourceId }, 'webhook_source.deleted')
    return { status: 204 }
  }
}

/** Pauses or resumes a source. Runs that wait go on at once, more than 1,000 within 15 s. */
export function pauseSource(
  { db, changeNotices }: Pick<DispatcherContext, 'db' | 'changeNotices'>,
  isPaused: boolean,
): InternalHandlers['pauseWebhookSource'] {
  return async (request) => {
    const { organization_id: organizationId, source_id: sourceId } = request.params
    const by = readActor(organizationId, request) ?? operatorOf(organizationId)
    if (!(await setSourcePaused(db, organizationId, sourceId, isPaused, by))) throw notFound('Webhook source')
    if (!isPaused) await wakePausedSessions(db)
    changeNotices.add(organizationId, 'webhook_sources', 'runs')
    return { status: 204 }
  }
}

/** Verifies the stored values of a source and returns the delivery. A failure changes nothing. */
export function testSource(ctx: DispatcherContext): InternalHandlers['testWebhookSource'] {
  return async (request) => {
    const { params, requestId, trace } = request
    const { organization_id: organizationId, source_id: sourceId } = params
    const by = readActor(organizationId, request)
    const stored = orNotFound(await findStoredSource(ctx.db, organizationId, sourceId), 'Webhook source')
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
      await confirmWebhookSource(ctx.db, organizationId, sourceId, source.version)
      ctx.changeNotices.add(organizationId, 'webhook_sources')
    }
    return { status: 200, body: delivery }
  }
}
