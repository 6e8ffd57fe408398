import type { AppAnswer, DeliveryDetailOut, RunDetailOut } from '@workflow-service/contract'
import {
  type ApprovalDecisionRequest,
  countWaitingApprovals,
  decideApprovals,
  findVisibleDeliveries,
  findFirstSent,
  findVisibleDelivery,
  findVisibleRun,
  hasWebhookSourceLog,
  listVisibleDeliveries,
  listWaitingApprovals,
  type Viewer,
  viewerOf,
} from '@workflow-service/database'
import { ApiError, orNotFound, notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { actorHeaders } from '../../auth/principal.ts'
import type { AppHandlers, AppRequestOf } from '../app-handlers.ts'
import { answerIds, answerPage, byTime } from '../paging.ts'
import { toDeliveryFilter } from './delivery-filter.ts'

const DELIVERIES = byTime('deliveries')
const ALL_DELIVERIES = byTime('all deliveries')

/** Handlers of the delivery log. */
export function deliveryHandlers(ctx: AppServiceContext) {
  return {
    listDeliveries: async ({ principal, params, query }) => {
      const { source_id: sourceId } = params
      const viewer = viewerOf(principal)
      const named = await answerIds(query, (ids) => findVisibleDeliveries(ctx.db, viewer, sourceId, ids))
      if (named) return named
      const filter = { ...toDeliveryFilter(query), kind: query.kind, sourceId }
      const answer = await answerPage(query, DELIVERIES, (page) =>
        listVisibleDeliveries(ctx.db, viewer, { ...filter, ...page }),
      )
      const isEmpty = answer.body.data.length === 0
      if (isEmpty && !(await hasWebhookSourceLog(ctx.db, principal.organizationId, sourceId))) {
        throw notFound('Webhook source')
      }
      return answer
    },
    listAllDeliveries: async ({ principal, query }) => {
      const viewer = viewerOf(principal)
      const filter = { ...toDeliveryFilter(query), kind: query.kind }
      return (
        (await answerIds(query, (ids) => findVisibleDeliveries(ctx.db, viewer, null, ids))) ??
        (await answerPage(query, ALL_DELIVERIES, (page) =>
          listVisibleDeliveries(ctx.db, viewer, { ...filter, ...page }),
        ))
      )
    },
    getDelivery: async ({ principal, params }) => ({
      body: await readDelivery(ctx, viewerOf(principal), params.delivery_id),
    }),
    resendDelivery: (request) => resendDelivery(ctx, request),
    countApprovals: async ({ principal }) => ({
      body: { count: await countWaitingApprovals(ctx.db, viewerOf(principal)) },
    }),
    listApprovals: async ({ principal }) => ({
      body: { data: await listWaitingApprovals(ctx.db, viewerOf(principal)) },
    }),
    decideApprovals: (request) => decideMany(ctx, request),
    approveDelivery: (request) => decide(ctx, request, { decision: 'approved', reason: null, ...request.body }),
    declineDelivery: (request) => decide(ctx, request, { decision: 'declined', reason: request.body.reason || null }),
  } satisfies Partial<AppHandlers>
}

/** Records the decision on a payload that waits, and wakes its session. */
async function decide(
  ctx: AppServiceContext,
  request: AppRequestOf<'approveDelivery' | 'declineDelivery'>,
  decision: Pick<ApprovalDecisionRequest, 'decision' | 'reason' | 'payload'>,
): Promise<{ body: RunDetailOut }> {
  const { principal, params, requestId } = request
  const outcome = await decideApprovals(ctx.db, { ...decision, deliveryId: params.delivery_id }, request)
  if (outcome.kind === 'not_found') throw notFound('Delivery')
  if (outcome.kind === 'not_waiting') {
    throw new ApiError('not_waiting', 'This payload does not wait for an approval: it was decided, or it expired.')
  }
  if (outcome.kind === 'invalid') {
    const details = [{ field: 'payload', code: 'value_error', message: outcome.reason }]
    throw new ApiError('validation_error', 'The payload does not follow the example.', { details })
  }
  ctx.sessionNotifier.notify(outcome.sessionId, requestId)
  ctx.changeNotices.add(principal.organizationId, 'runs', 'sessions')
  return { body: orNotFound(await findVisibleRun(ctx.db, viewerOf(principal), outcome.runId), 'Run') }
}

/** Decides on each payload by itself, oldest first as the page names them. */
async function decideMany(
  ctx: AppServiceContext,
  request: AppRequestOf<'decideApprovals'>,
): Promise<{ body: AppAnswer<'decideApprovals'> }> {
  const { decision, delivery_ids: ids, reason } = request.body
  let decided = 0
  for (const deliveryId of new Set(ids)) {
    const outcome = await decideApprovals(ctx.db, { decision, reason: reason || null, deliveryId }, request)
    if (outcome.kind !== 'decided') continue
    decided += 1
    ctx.sessionNotifier.notify(outcome.sessionId, request.requestId)
  }
  ctx.changeNotices.add(request.principal.organizationId, 'runs', 'sessions')
  return { body: { decided, not_waiting: ids.length - decided } }
}

/** @throws ApiError 404 */
async function readDelivery(ctx: AppServiceContext, viewer: Viewer, deliveryId: string): Promise<DeliveryDetailOut> {
  const read = orNotFound(await findVisibleDelivery(ctx.db, viewer, deliveryId), 'Delivery')
  const { has_signing_secret: hasSecretNow, ...delivery } = read
  const firstId = delivery.resend_of ? await findFirstSent(ctx.db, delivery.resend_of) : delivery.id
  return { ...delivery, headers: toHeaders(delivery, firstId, hasSecretNow) }
}

/**
 * The headers of the request. Neither tokens nor whether a payload had one are recorded: the latter follows the source.
 */
function toHeaders(
  delivery: Omit<DeliveryDetailOut, 'headers'>,
  firstId: string,
  hasSecretNow: boolean,
): DeliveryDetailOut['headers'] {
  const data = delivery.kind === 'verification' ? delivery.request_body?.['data'] : undefined
  const hadSecret = data === undefined ? hasSecretNow : (data as { signing_secret?: unknown }).signing_secret !== null
  return [
    { name: 'Content-Type', value: 'application/json' },
    { name: 'X-Request-Id', value: delivery.request_id ?? '' },
    { name: 'X-Delivery-Id', value: firstId },
    ...(hadSecret
      ? [
          { name: 'X-Service-Token', value: '[a new token for each request]' },
          { name: 'X-Service-Signature', value: '[a new signature for each request]' },
        ]
      : []),
  ]
}

/** Sends the payload of a visible delivery again through the dispatcher, which does it at most once for the new id. */
async function resendDelivery(
  ctx: AppServiceContext,
  { principal, params, body, requestId }: AppRequestOf<'resendDelivery'>,
): Promise<{ body: DeliveryDetailOut }> {
  const viewer = viewerOf(principal)
  const { organizationId, userId } = principal
  const earlierId = body.resend_of.toLowerCase()
  const ids = [params.delivery_id, earlierId]
  const known = await ctx.shares.inTurn(principal, () => findVisibleDeliveries(ctx.db, viewer, null, ids))
  // A repeated request is not a second resend, also when the earlier delivery is deleted by now.
  const isKnown = known.some(({ id, resend_of }) => (id === params.delivery_id ? resend_of : id) === earlierId)
  if (!isKnown) throw notFound('Delivery')
  const sent = await ctx.dispatcher
    .call('sendPayload', {
      params: { delivery_id: params.delivery_id },
      body: { organization_id: organizationId, resend_of: earlierId, sent_by: userId },
      headers: actorHeaders(principal),
      requestId,
    })
    .catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 'approval_required') throw error
      throw new ApiError('forbidden_for_role', error.message)
    })
  // The outcome may still be on its way into the database.
  const { outcome, status, reason, mismatches, duration_ms, answer, finished_at } = sent
  const recorded = await ctx.shares.inTurn(principal, () => readDelivery(ctx, viewer, params.delivery_id))
  return { body: { ...recorded, outcome, status, reason, mismatches, duration_ms, answer, finished_at } }
}
