import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { checkPayload, type DeliveryOut, PAYLOAD_DEADLINE_MS, type TraceContext } from '@workflow-service/contract'
import {
  type ClaimedDelivery,
  type DeliveryClaimRequest,
  type DeliveryResult,
  type DeliveryTarget,
  endFirstApproval,
  findDeliveryState,
  isDatabaseUnavailable,
  removeUnsentDelivery,
  SecretError,
  UNKNOWN_REASON,
} from '@workflow-service/database'
import {
  ApiError,
  backoff,
  describeError,
  type LimitReached,
  notFound,
  type ReleaseSlot,
  serviceUnavailable,
} from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { SEND_WITHIN_MS } from './deadlines.ts'
import { toDeliveryResult, unanswered } from './describe-outcome.ts'
import { inFlightDelivery, type JournalUpdate, type RecordedDelivery } from './outcome-recorder.ts'
import { reportDelivery } from './report-delivery.ts'
import { NotSentError, sendSignedRequest } from './send-signed-request.ts'

/** A payload to send once for its id. */
export interface PayloadRequest extends Omit<DeliveryClaimRequest, 'requestBody' | 'journal'> {
  payload: Record<string, unknown>
  /** What is written into the journal of the run with the claim and the outcome. */
  journal?: JournalUpdate | null
  trace: TraceContext | null
}

/**
 * Sends the payload at most once for its id, however often it is requested and whichever process dies, and resolves to
 * the delivery with its outcome. Implements contract README, "Internal API" (sending a payload).
 * @throws ApiError before anything is sent: 404 for the source, 403 if the organization is suspended, 409
 * `lease_lost`, `approval_required` or `idempotency_conflict`, 503 `source_paused`, or if the source or this process
 * is at its limit, or the database is slow or unavailable. The caller may repeat the call with the same id.
 */
export function deliverPayload(ctx: DispatcherContext, request: PayloadRequest): Promise<RecordedDelivery> {
  const arrivedMs = performance.now()
  // Calls for one id run one after the other, so an id that this call finds in flight is not being sent by this
  // process.
  return ctx.runExclusive(request.id, async () => {
    const unrecorded = ctx.outcomes.find(request.id)
    if (unrecorded) return assertSamePayload(unrecorded, request)
    const waitMs = ctx.slotWaitMs - (performance.now() - arrivedMs)
    const firstArrivedMs = ctx.firstArrivals.take(request.id) ?? arrivedMs
    const slot = await ctx.limiter.acquire(request.sourceId, waitMs, firstArrivedMs)
    if (typeof slot === 'string') {
      ctx.firstArrivals.add(request.id, firstArrivedMs)
      throw limitReached(ctx, slot)
    }
    try {
      return await recordAndSend(ctx, request, slot)
    } finally {
      slot()
    }
  })
}

/** A limit is back-pressure, not an outcome: nothing is recorded, and the payload can be sent later. */
function limitReached({ config }: DispatcherContext, limit: LimitReached): ApiError {
  const what =
    limit === 'key_limit'
      ? `${config.maxInFlightPerSource} requests to this webhook source are in flight`
      : 'Too many deliveries are in flight'
  return serviceUnavailable(`${what}. Nothing was sent. Repeat the call with the same id.`)
}

async function recordAndSend(
  ctx: DispatcherContext,
  request: PayloadRequest,
  releaseSlot: ReleaseSlot,
): Promise<RecordedDelivery> {
  const claimedMs = performance.now()
  const requestBody = JSON.stringify(request.payload)
  const { id, organizationId, sourceId, runId, requestId, lease, journal, resend } = request
  const claim = await ctx.store.claim({ ...request, requestBody })
  switch (claim.kind) {
    case 'no_source':
      throw resend ? notResendable('its webhook source is deleted') : notFound('Webhook source')
    case 'earlier_deleted':
      throw notFound('Delivery')
    case 'approval_required':
      throw new ApiError(
        'approval_required',
        resend
          ? 'The webhook source asks for approval: only an admin or owner sends a payload to it again. Nothing was sent.'
          : 'This payload needs the approval of a person. Nothing was sent.',
      )
    case 'known':
      // Another process may be sending it for up to 30 s; the slot is for requests of this process.
      releaseSlot()
      return await waitForOutcome(ctx, request)
    case 'claimed': {
      const claimed = inFlightDelivery({
        id,
        organization_id: organizationId,
        source_id: sourceId,
        kind: 'payload',
        request_body: request.payload,
        session_id: (lease ?? resend)?.sessionId ?? null,
        run_id: runId,
        request_id: requestId,
        created_at: claim.createdAt.toISOString(),
        resend_of: resend?.of ?? null,
        sent_by: resend?.sentBy ?? null,
      })
      const result = await send(ctx, request, requestBody, claim, claimedMs)
      if (result instanceof NotSentError) {
        releaseSlot()
        await removeClaim(ctx, claimed, result)
        // The claim became `unknown` meanwhile, and its callers know that. The log can still say what happened.
        return await ctx.outcomes.record(claimed, unanswered('refused', `${result.message} Nothing was sent.`), journal)
      }
      const delivery = await ctx.outcomes.record(claimed, result, journal)
      if (claim.target.isFirstApproval && delivery.outcome === 'accepted') {
        await endFirstApprovals(ctx, request, claim.target)
      }
      reportDelivery(ctx, delivery)
      return delivery
    }
    default:
      throw new ApiError(claim.kind, `${REFUSALS[claim.kind]} Nothing was sent.`)
  }
}

const REFUSALS = {
  lease_lost: "The lease is no longer the session's current one.",
  organization_suspended: 'The organization is suspended: the operator of the service has to resume it first.',
  source_paused: 'The webhook source is paused: resume it first.',
}

/** Never rejects: if it cannot be recorded, the next payload needs an approval too. */
async function endFirstApprovals(
  { db, logger }: DispatcherContext,
  { organizationId, sourceId }: PayloadRequest,
  { version }: DeliveryTarget,
): Promise<void> {
  try {
    await endFirstApproval(db, organizationId, sourceId, version)
  } catch (error) {
    logger.warn({ source_id: sourceId, error: describeError(error) }, 'approval.record_failed')
  }
}

/** Never rejects: after the claim, every error needs an outcome, unless it is certain that nothing was sent. */
async function send(
  ctx: DispatcherContext,
  request: PayloadRequest,
  body: string,
  { target, attempt }: ClaimedDelivery,
  claimedMs: number,
): Promise<DeliveryResult | NotSentError> {
  try {
    const { exampleRequestBody: example } = target
    const invalid = checkPayload(example, request.payload, body)
    if (invalid) return invalid
    const owner = { organizationId: request.organizationId, id: request.sourceId }
    const signingSecret = target.signingSecret && ctx.secrets.decrypt(owner, target.signingSecret)
    const nowMs = performance.now()
    if (nowMs > ctx.sending.endsMs) return new NotSentError('The service stops.')
    if (nowMs - claimedMs > SEND_WITHIN_MS) return new NotSentError('The service was delayed before it could send.')
    const { result, redact } = await sendSignedRequest(ctx, {
      url: target.endpointUrl,
      body,
      signingSecret,
      delivery: { id: request.resend?.firstId ?? request.id, attempt },
      requestId: request.requestId,
      trace: request.trace,
      spanAttributes: {
        'workflow_service.organization.id': request.organizationId,
        'workflow_service.webhook_source.id': request.sourceId,
        'workflow_service.delivery.id': request.id,
        'workflow_service.run.id': request.runId,
      },
      deadlineMs: PAYLOAD_DEADLINE_MS,
      reuseKey: request.sourceId,
    })
    return toDeliveryResult(result, redact)
  } catch (error) {
    if (error instanceof NotSentError) return error
    if (error instanceof SecretError) {
      ctx.logger.error({ source_id: request.sourceId, error: describeError(error) }, 'secret.decrypt_failed')
      if (error.isKeyUnknown) return new NotSentError('The service does not have the key of this signing secret yet.')
      return unanswered('refused', 'The service cannot read the signing secret of this source. Nothing was sent.')
    }
    ctx.logger.error({ delivery_id: request.id, error: describeError(error) }, 'delivery.send_failed')
    return unanswered('unknown', UNKNOWN_REASON)
  }
}

/**
 * Removes the claim of a payload that was not sent, so that its id can be claimed anew. Retries while the database is
 * unavailable, until the claim becomes `unknown`. Resolves if it is `unknown` already.
 * @throws ApiError 503 once the claim is removed.
 */
async function removeClaim(ctx: DispatcherContext, claimed: DeliveryOut, { message }: NotSentError): Promise<void> {
  const nextDelayMs = backoff({ firstMs: 50, maxMs: 1_000 })
  const giveUpAtMs = performance.now() + ctx.deliveryDeadlineMs
  for (;;) {
    try {
      if (await removeUnsentDelivery(ctx.db, claimed)) break
      // An earlier attempt may have removed it, although its answer was lost, and another process claimed the id since.
      const state = await findDeliveryState(ctx.db, claimed.id)
      if (state?.delivery.created_at !== claimed.created_at) break
      return
    } catch (error) {
      if (!isDatabaseUnavailable(error) || performance.now() > giveUpAtMs) throw error
    }
    await sleep(nextDelayMs())
  }
  const { id, source_id } = claimed
  ctx.logger.warn({ delivery_id: id, source_id, reason: message }, 'delivery.not_sent')
  throw serviceUnavailable(`${message} Nothing was sent. Repeat the call with the same id.`)
}

/**
 * Waits for the outcome of a delivery that was recorded before this call. After its deadline the dispatcher that sent
 * it must have died, and the delivery becomes `unknown`.
 * @throws ApiError 503 if the record is gone, because the call that made it could not send.
 */
async function waitForOutcome(ctx: DispatcherContext, request: PayloadRequest): Promise<DeliveryOut> {
  const { id, organizationId } = request
  const nextDelayMs = backoff({ firstMs: 50, maxMs: 500 })
  for (;;) {
    const state = await findDeliveryState(ctx.db, id)
    if (!state) throw serviceUnavailable('Another call with this id could not send. Repeat the call with the same id.')
    const delivery = assertSamePayload(state.delivery, request)
    if (delivery.outcome !== 'in_flight') return delivery
    if (state.ageMs <= ctx.deliveryDeadlineMs) await sleep(nextDelayMs())
    else if (await ctx.store.recordOutcome({ organizationId, id, result: unanswered('unknown', UNKNOWN_REASON) })) {
      ctx.deliveryMetrics.countAbandoned(1)
    }
  }
}

/**
 * Returns the recorded delivery if it has the same payload and source, and repeats the same delivery. The run and the
 * lease may differ.
 * @throws ApiError 409 `idempotency_conflict` if it has not, or belongs to another organization.
 */
function assertSamePayload(delivery: DeliveryOut, request: PayloadRequest): DeliveryOut {
  const isSame =
    delivery.kind === 'payload' &&
    delivery.organization_id === request.organizationId &&
    delivery.source_id === request.sourceId &&
    delivery.resend_of === (request.resend?.of ?? null) &&
    isDeepStrictEqual(asJson(delivery.request_body), asJson(request.payload))
  if (!isSame) throw idempotencyConflict()
  return delivery
}

/** Returns the value as JSON transports it: -0 becomes 0. */
function asJson(body: Record<string, unknown>): unknown {
  return JSON.parse(JSON.stringify(body))
}

/** Returns the refusal of an id that belongs to another delivery. */
export function idempotencyConflict(): ApiError {
  return new ApiError(
    'idempotency_conflict',
    'This delivery id was used for a different request. Nothing was sent. Use a new id for another payload.',
  )
}

/** Returns the refusal to send the payload of an earlier delivery again. */
export function notResendable(why: string): ApiError {
  return new ApiError('not_resendable', `The delivery cannot be sent again: ${why}. Nothing was sent.`)
}
