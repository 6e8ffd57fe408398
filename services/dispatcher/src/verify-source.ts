import { VERIFICATION_DEADLINE_MS, VERIFICATION_TYPE } from '@workflow-service/contract'
import { type Delivery, newId, recordVerification } from '@workflow-service/database'
import { serviceUnavailable } from '@workflow-service/service-kit'
import { createServiceToken, SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'
import type { AppContext } from './app-context.ts'
import { createHide, toDeliveryResult, toVerificationFault, type VerificationFault } from './describe-outcome.ts'
import { logDelivery } from './log-delivery.ts'

/** What a verification request tells the endpoint (contract 4.5). */
export interface VerificationRequest {
  organizationId: string
  sourceId: string
  targetUrl: string
  signingSecret: string | null
  bodyExample: Record<string, unknown>
  requestId: string
}

/** What came of it. `fault` is undefined when the endpoint confirmed. */
export interface Verification {
  delivery: Delivery
  fault: VerificationFault | undefined
}

/** Sends the one request that carries the secret, once, and logs it without the secret. The organization must exist. */
export async function verifySource(ctx: AppContext, request: VerificationRequest): Promise<Verification> {
  // A place of its own: a source whose deliveries all hang must be mendable.
  const release = await ctx.places.take(`verification:${request.sourceId}`)
  if (typeof release === 'string') throw serviceUnavailable('Too many requests to endpoints are under way; try again.')
  try {
    const started = await startLogEntry(ctx, request)
    const token = request.signingSecret === null ? null : createServiceToken(request.signingSecret)
    const result = await ctx.sendRequest({
      url: request.targetUrl,
      body: JSON.stringify(toEnvelope(request, request.signingSecret)),
      headers: { 'X-Request-Id': request.requestId, ...(token === null ? {} : { [SERVICE_TOKEN_HEADER]: token }) },
      deadlineMs: VERIFICATION_DEADLINE_MS,
    })
    const hide = createHide([request.signingSecret, token])
    // The agent reads answers to payloads only, and this endpoint was just told the secret: its words are not kept.
    const entry = { ...toDeliveryResult(result, hide), answer: null }
    const delivery = await ctx.outcomes.record(started, entry)
    logDelivery(ctx, delivery)
    return { delivery, fault: toVerificationFault(result, hide) }
  } finally {
    release()
  }
}

async function startLogEntry(ctx: AppContext, request: VerificationRequest): Promise<Delivery> {
  const { organizationId, sourceId, requestId } = request
  const requestBody = toEnvelope(request, request.signingSecret === null ? null : '[hidden]')
  const id = newId()
  const createdAt = await recordVerification(ctx.db, organizationId, {
    id,
    sourceId,
    requestBody: JSON.stringify(requestBody),
    requestId,
  })
  return {
    id,
    organizationId,
    sourceId,
    kind: 'verification',
    outcome: 'in_flight',
    status: null,
    reason: null,
    mismatches: null,
    durationMs: null,
    answer: null,
    requestBody,
    sessionId: null,
    runId: null,
    requestId,
    createdAt,
    finishedAt: null,
  }
}

function toEnvelope(request: VerificationRequest, signingSecret: string | null): Record<string, unknown> {
  return {
    type: VERIFICATION_TYPE,
    organization_id: request.organizationId,
    source_id: request.sourceId,
    data: { target_url: request.targetUrl, signing_secret: signingSecret, body_example: request.bodyExample },
  }
}
