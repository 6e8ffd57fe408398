import type { AppResponseBody, DeliveryDetailOut, ResendJobOut, ResendPreviewIn } from '@workflow-service/contract'
import {
  type ApprovalDecisionRequest,
  countWaitingApprovals,
  createResendJob,
  decideApprovals,
  type DeliveryListQuery,
  findVisibleDeliveries,
  findFirstSent,
  findResendJob,
  findVisibleDelivery,
  findVisibleRun,
  hasWebhookSourceLog,
  listResendJobs,
  listVisibleDeliveries,
  listWaitingApprovals,
  previewResends,
  type ResendFilter,
  stopResendJob,
  type Viewer,
} from '@workflow-service/database'
import { ApiError, byTime, notFound, orNotFound, pageResponse, toDate } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { actorHeaders } from '../../auth/principal.ts'
import type { AppHandlers, AppRequestOf } from '../app-handlers.ts'
import { pageOfIds } from '../paging.ts'

const DELIVERIES = byTime('deliveries')

/** Handlers of the delivery log, and of payloads that wait for an approval. */
export function deliveryHandlers({ db, sessionNotifier, changeNotices, shares, dispatcher }: AppServiceContext) {
  /** Lists deliveries. Entries by their ids are those of `logId`, the log of a source, or of all. */
  const list = async (
    viewer: Viewer,
    query: AppRequestOf<'listAllDeliveries'>['query'],
    logId: string | null,
  ): Promise<AppResponseBody<'listAllDeliveries'>> =>
    (await pageOfIds(query, (ids) => findVisibleDeliveries(db, viewer, logId, ids))) ??
    (await pageResponse(query, DELIVERIES, (page) =>
      listVisibleDeliveries(db, viewer, { ...toDeliveryFilter(query), kind: query.kind, ...page }),
    ))

  /** Records the decision on a payload that waits, and wakes its session. */
  const decide = async (
    request: AppRequestOf<'approveDelivery' | 'declineDelivery' | 'decideApprovals'>,
    decision: ApprovalDecisionRequest,
  ) => {
    const outcome = await decideApprovals(db, decision, request)
    if (outcome.kind !== 'decided') return outcome
    sessionNotifier.notify(outcome.sessionId, request.requestId)
    changeNotices.add(request.principal.organizationId, 'runs', 'sessions')
    return outcome
  }
  const decideOne = async (
    request: AppRequestOf<'approveDelivery' | 'declineDelivery'>,
    decision: ApprovalDecisionRequest,
  ) => {
    const outcome = await decide(request, { ...decision, deliveryId: request.params.delivery_id })
    if (outcome.kind === 'not_found') throw notFound('Delivery')
    if (outcome.kind === 'not_waiting') {
      throw new ApiError(
        'not_waiting',
        'This payload does not wait for an approval: it was decided, it expired, or its run has ended.',
      )
    }
    if (outcome.kind === 'invalid') {
      const details = [{ field: 'payload', code: 'value_error', message: outcome.reason }]
      throw new ApiError('validation_error', 'The payload does not follow the example.', { details })
    }
    return orNotFound(await findVisibleRun(db, request.principal, outcome.runId), 'Run')
  }

  return {
    listDeliveries: async ({ principal, params: { source_id: sourceId }, query }) => {
      const response = await list(principal, { ...query, source_id: sourceId }, sourceId)
      const isEmpty = query.ids === undefined && response.data.length === 0
      if (isEmpty && !(await hasWebhookSourceLog(db, principal.organizationId, sourceId))) {
        throw notFound('Webhook source')
      }
      return response
    },
    listAllDeliveries: ({ principal, query }) => list(principal, query, null),
    getDelivery: ({ principal, params }) => readDelivery(db, principal, params.delivery_id),
    /** The dispatcher sends the payload again, at most once for the new id. */
    resendDelivery: async ({ principal, params, body, requestId }) => {
      const earlierId = body.resend_of.toLowerCase()
      const ids = [params.delivery_id, earlierId]
      const known = await shares.inTurn(principal, () => findVisibleDeliveries(db, principal, null, ids))
      // A repeated request is not a second resend, also when the earlier delivery is deleted by now.
      const isKnown = known.some(({ id, resend_of }) => (id === params.delivery_id ? resend_of : id) === earlierId)
      if (!isKnown) throw notFound('Delivery')
      const call = { organization_id: principal.organizationId, resend_of: earlierId, sent_by: principal.userId }
      const sent = await dispatcher
        .call('sendPayload', { params, body: call, headers: actorHeaders(principal), requestId })
        .catch((error: unknown) => {
          if (!(error instanceof ApiError) || error.code !== 'approval_required') throw error
          throw new ApiError('forbidden_for_role', error.message)
        })
      // The outcome may still be on its way into the database.
      const { outcome, status, reason, mismatches, duration_ms, answer, finished_at } = sent
      const recorded = await shares.inTurn(principal, () => readDelivery(db, principal, params.delivery_id))
      return { ...recorded, outcome, status, reason, mismatches, duration_ms, answer, finished_at }
    },
    countApprovals: async ({ principal }) => ({ count: await countWaitingApprovals(db, principal) }),
    listApprovals: async ({ principal }) => ({ data: await listWaitingApprovals(db, principal) }),
    /** Decides on each payload by itself, oldest first as the page names them. */
    decideApprovals: async (request) => {
      const { decision, delivery_ids: given, reason } = request.body
      const ids = new Set(given)
      let decided = 0
      for (const deliveryId of ids) {
        const outcome = await decide(request, { decision, reason: reason || null, deliveryId })
        if (outcome.kind === 'decided') decided += 1
      }
      return { decided, not_waiting: ids.size - decided }
    },
    approveDelivery: (request) => decideOne(request, { decision: 'approved', reason: null, ...request.body }),
    declineDelivery: (request) => decideOne(request, { decision: 'declined', reason: request.body.reason || null }),
  } satisfies Partial<AppHandlers>
}

/** Handlers of the jobs that send payloads again. */
export function resendJobHandlers({ db, changeNotices }: AppServiceContext) {
  const read = async (viewer: Viewer, id: string): Promise<ResendJobOut> =>
    orNotFound(await findResendJob(db, viewer, id), 'Job')
  return {
    previewResends: ({ principal, body }) => previewResends(db, principal, toFilter(body)),
    createResendJob: async (request) => {
      const { principal, body } = request
      const { id, per_second: perSecond } = body
      const filter = toFilter(body)
      const previewedAt = toDate(body.previewed_at)
      const isAny = await createResendJob(db, principal, { id, filter, previewedAt, perSecond, by: request })
      // Of a repeated request, whose payloads may all be sent by now.
      const job = await findResendJob(db, principal, id)
      if (!job && isAny) throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      if (!job)
        throw new ApiError(
          'not_resendable',
          'No payload matches that can be sent again, or they are being sent, or a running job has them. Nothing was sent.',
        )
      changeNotices.add(principal.organizationId, 'deliveries')
      return job
    },
    listResendJobs: async ({ principal }) => ({ data: await listResendJobs(db, principal) }),
    getResendJob: ({ principal, params }) => read(principal, params.resend_job_id),
    stopResendJob: async (request) => {
      const { principal, params } = request
      await stopResendJob(db, principal, params.resend_job_id, request)
      changeNotices.add(principal.organizationId, 'deliveries')
      return await read(principal, params.resend_job_id)
    },
  } satisfies Partial<AppHandlers>
}

function toFilter(body: ResendPreviewIn): ResendFilter {
  return body.ids ? { ids: body.ids } : toDeliveryFilter(body)
}

/** What a request asks for of the deliveries of all sources. */
function toDeliveryFilter(
  asked: Omit<ResendPreviewIn, 'per_second' | 'ids'>,
): Omit<DeliveryListQuery, 'limit' | 'after' | 'kind'> {
  const { source_id: sourceId, workflow_id: workflowId, outcome, status, search } = asked
  return {
    sourceId,
    workflowId,
    outcome,
    status,
    search,
    isSentAgain: asked.sent_again && asked.sent_again === 'yes',
    needsAttention: asked.needs_attention && asked.needs_attention === 'yes',
    since: toDate(asked.since),
    until: toDate(asked.until),
  }
}

/**
 * Reads a delivery with the headers of its request. Neither tokens nor whether a payload had one are recorded: the
 * latter follows the source.
 * @throws ApiError 404
 */
async function readDelivery(db: AppServiceContext['db'], viewer: Viewer, id: string): Promise<DeliveryDetailOut> {
  const read = orNotFound(await findVisibleDelivery(db, viewer, id), 'Delivery')
  const { has_signing_secret: hasSecretNow, ...delivery } = read
  const data = delivery.kind === 'verification' ? delivery.request_body?.['data'] : undefined
  const hadSecret = data === undefined ? hasSecretNow : (data as { signing_secret?: unknown }).signing_secret !== null
  const headers = {
    'Content-Type': 'application/json',
    'X-Request-Id': delivery.request_id ?? '',
    'X-Delivery-Id': delivery.resend_of ? await findFirstSent(db, delivery.resend_of) : delivery.id,
    ...(hadSecret && {
      'X-Service-Token': '[a new token for each request]',
      'X-Service-Signature': '[a new signature for each request]',
    }),
  }
  return { ...delivery, headers: Object.entries(headers).map(([name, value]) => ({ name, value })) }
}
