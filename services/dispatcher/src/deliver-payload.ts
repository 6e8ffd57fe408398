import { isDeepStrictEqual } from 'node:util'
import { setTimeout as pause } from 'node:timers/promises'
import {
  describeMismatches,
  type FieldError,
  PAYLOAD_DEADLINE_MS,
  PAYLOAD_MAX_BYTES,
  findPayloadMismatches,
} from '@workflow-service/contract'
import {
  type Delivery,
  type DeliveryLease,
  type DeliveryResult,
  type DeliveryTarget,
  findDeliveryState,
  SecretError,
  UNKNOWN_REASON,
} from '@workflow-service/database'
import { ApiError, describeError, notFound, serviceUnavailable } from '@workflow-service/service-kit'
import { createServiceToken, SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'
import type { AppContext } from './app-context.ts'
import { createHide, toDeliveryResult } from './describe-outcome.ts'
import { logDelivery } from './log-delivery.ts'
import type { Full, Release } from './places.ts'

/** A payload to send once for its id. */
export interface PayloadRequest {
  id: string
  organizationId: string
  sourceId: string
  payload: Record<string, unknown>
  runId: string | null
  lease: DeliveryLease | null
  requestId: string
}

/** A process that was held up for longer than this after its claim (a pause, a full CPU) sends nothing any more. */
const SEND_WITHIN_MS = 8_000
/** After this, nobody can still be sending: the claim, the hold-up and the 30 s of the exchange are over. */
const OUTCOME_DUE_MS = SEND_WITHIN_MS + PAYLOAD_DEADLINE_MS + 2_000
const POLL_MS = 250

/**
 * Sends the payload at most once for its id, whoever asks how often and whatever dies, and resolves with what came of it
 * (design 6.6). Rejects before anything is sent: 404 for the source, 409 `lease_lost` or `idempotency_conflict`, 503
 * when this process or the database has no room; the same id may be asked again after each.
 */
export function deliverPayload(ctx: AppContext, request: PayloadRequest): Promise<Delivery> {
  return ctx.inTurn(request.id, async () => {
    const unrecorded = ctx.outcomes.find(request.id)
    if (unrecorded) return sameDelivery(unrecorded, request)
    const place = await ctx.places.take(request.sourceId)
    if (place === 'full') throw serviceUnavailable('Too many deliveries are under way; ask again with the same id.')
    try {
      return await deliverAt(ctx, request, place)
    } finally {
      if (typeof place === 'function') place()
    }
  })
}

async function deliverAt(
  ctx: AppContext,
  request: PayloadRequest,
  place: Release | Exclude<Full, 'full'>,
): Promise<Delivery> {
  const claimedMs = performance.now()
  const requestBody = JSON.stringify(request.payload)
  const { id, organizationId, sourceId, runId, requestId } = request
  const { lease } = request
  const claim = await ctx.store.claim({ id, organizationId, sourceId, requestBody, runId, requestId, lease })
  switch (claim.kind) {
    case 'no_source':
      throw notFound('Webhook source')
    case 'lease_lost':
      throw new ApiError('lease_lost', "The lease is no longer the session's current one. Nothing was sent.")
    case 'known':
      // It may take as long as another process takes to send: nobody else should be kept waiting for that.
      if (typeof place === 'function') place()
      return await knownDelivery(ctx, request)
    case 'claimed': {
      const result =
        typeof place === 'string'
          ? refused(
              `${ctx.config.maxInFlightPerSource} deliveries to this source are under way already. Nothing was sent.`,
            )
          : await send(ctx, request, requestBody, claim.target, claimedMs).catch((error: unknown) => {
              ctx.logger.error({ delivery_id: id, error: describeError(error) }, 'sending failed unforeseen')
              return unknown()
            })
      const delivery = await ctx.outcomes.record(claimedDelivery(request, claim.createdAt), result)
      logDelivery(ctx, delivery)
      return delivery
    }
    default:
      return claim satisfies never
  }
}

async function send(
  ctx: AppContext,
  request: PayloadRequest,
  body: string,
  target: DeliveryTarget,
  claimedMs: number,
): Promise<DeliveryResult> {
  const mismatches = findMismatches(target.exampleRequestBody, request.payload, body)
  if (mismatches.length > 0) {
    return { ...refused(describeMismatches(mismatches)), outcome: 'invalid', mismatches }
  }
  let secret: string | null
  try {
    secret = target.signingSecret && ctx.secrets.decrypt(request, target.signingSecret)
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    ctx.logger.error({ source_id: request.sourceId, error: describeError(error) }, 'signing secret cannot be read')
    return refused('The service cannot read the signing secret of this source. Nothing was sent.')
  }
  if (performance.now() - claimedMs > SEND_WITHIN_MS) {
    return refused('The service was held up before it could send. Nothing was sent.')
  }
  const token = secret === null ? null : createServiceToken(secret)
  const result = await ctx.sendRequest({
    url: target.endpointUrl,
    body,
    headers: { 'X-Request-Id': request.requestId, ...(token === null ? {} : { [SERVICE_TOKEN_HEADER]: token }) },
    deadlineMs: PAYLOAD_DEADLINE_MS,
  })
  return toDeliveryResult(result, createHide([secret, token]))
}

function findMismatches(example: Record<string, unknown>, payload: unknown, body: string): FieldError[] {
  const bytes = Buffer.byteLength(body)
  if (bytes > PAYLOAD_MAX_BYTES) {
    const message = `must be at most ${PAYLOAD_MAX_BYTES.toLocaleString('en')} bytes of JSON; it has ${bytes.toLocaleString('en')}`
    return [{ field: 'body', code: 'too_large', message }]
  }
  return findPayloadMismatches(example, payload)
}

/**
 * Waits for the outcome of a delivery that was recorded before. A delivery that is in flight past its deadline becomes
 * `unknown`: its dispatcher died.
 */
async function knownDelivery(ctx: AppContext, request: PayloadRequest): Promise<Delivery> {
  for (;;) {
    const state = await findDeliveryState(ctx.db, request.organizationId, request.id)
    if (!state) throw conflict()
    const delivery = sameDelivery(state.delivery, request)
    if (delivery.outcome !== 'in_flight') return delivery
    if (state.ageMs > OUTCOME_DUE_MS) {
      await ctx.store.recordOutcome({ organizationId: request.organizationId, id: request.id, result: unknown() })
      continue
    }
    await pause(POLL_MS)
  }
}

/** The delivery, if it is of the same payload to the same source. Which run or lease asks makes no difference. */
function sameDelivery(delivery: Delivery, request: PayloadRequest): Delivery {
  const isSame =
    delivery.kind === 'payload' &&
    delivery.organizationId === request.organizationId &&
    delivery.sourceId === request.sourceId &&
    isDeepStrictEqual(asSent(delivery.requestBody), asSent(request.payload))
  if (!isSame) throw conflict()
  return delivery
}

/** JSON has one zero, JavaScript two. */
function asSent(body: Record<string, unknown>): unknown {
  return JSON.parse(JSON.stringify(body))
}

function conflict(): ApiError {
  return new ApiError(
    'idempotency_conflict',
    'This delivery id was used for something else. Nothing was sent: choose a new id for another payload.',
  )
}

function refused(reason: string): DeliveryResult {
  return { outcome: 'refused', status: null, reason, mismatches: null, durationMs: null, answer: null }
}

function unknown(): DeliveryResult {
  return { ...refused(UNKNOWN_REASON), outcome: 'unknown' }
}

function claimedDelivery(request: PayloadRequest, createdAt: Date): Delivery {
  return {
    id: request.id,
    organizationId: request.organizationId,
    sourceId: request.sourceId,
    kind: 'payload',
    outcome: 'in_flight',
    status: null,
    reason: null,
    mismatches: null,
    durationMs: null,
    answer: null,
    requestBody: request.payload,
    sessionId: request.lease?.sessionId ?? null,
    runId: request.runId,
    requestId: request.requestId,
    createdAt,
    finishedAt: null,
  }
}
