import {
  type TraceContext,
  VERIFICATION_DEADLINE_MS,
  VERIFICATION_TYPE,
  type WebhookVerification,
} from '@workflow-service/contract'
import {
  type AuditedBy,
  type Delivery,
  newId,
  recordVerification,
  removeUnsentDelivery,
} from '@workflow-service/database'
import { serviceUnavailable } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { toDeliveryResult, toVerificationFailure, type VerificationFailure } from '../deliveries/describe-outcome.ts'
import { inFlightDelivery } from '../deliveries/outcome-recorder.ts'
import { reportDelivery } from '../deliveries/report-delivery.ts'
import { isRedactable, REDACTED } from '../deliveries/redact.ts'
import { NotSentError, sendSignedRequest } from '../deliveries/send-signed-request.ts'
import { inTurn } from './in-turn.ts'

/** Shorter than a payload's: a person waits for the answer to a save. */
const SLOT_WAIT_MS = 5_000

export interface VerificationRequest {
  organizationId: string
  sourceId: string
  targetUrl: string
  signingSecret: string | null
  bodyExample: Record<string, unknown>
  requestId: string
  trace: TraceContext | null
  /** Of a test: for the audit event. */
  test?: { by: AuditedBy; sourceName: string } | undefined
}

/** `failure` is undefined if the endpoint confirmed. */
export interface Verification {
  delivery: Delivery
  failure: VerificationFailure | undefined
}

/**
 * Sends one verification request, the only request that carries the secret, and logs it without the secret. The
 * organization must exist. Implements contract README, "Verification request".
 * @throws ApiError 503 if this process is at its limit, or could not open a connection; nothing was sent then.
 */
export async function verifySource(ctx: DispatcherContext, request: VerificationRequest): Promise<Verification> {
  const { organizationId, sourceId, signingSecret, requestId } = request
  // Verification has its own concurrency slots, so a source whose deliveries all hang can still be edited.
  const slot = await ctx.limiter.acquire(`verification:${sourceId}`, Math.min(ctx.slotWaitMs, SLOT_WAIT_MS))
  if (typeof slot === 'string') throw serviceUnavailable('Too many requests to endpoints are in flight. Try again.')
  try {
    const loggedBody = toBody(request, signingSecret === null ? null : REDACTED)
    const id = newId()
    const requestBody = JSON.stringify(loggedBody)
    const logged = { id, sourceId, requestBody, requestId }
    const createdAt = await inTurn(ctx, organizationId, () =>
      recordVerification(ctx.db, organizationId, logged, request.test),
    )
    const sending = sendSignedRequest(ctx, {
      url: request.targetUrl,
      body: JSON.stringify(toBody(request, signingSecret)),
      signingSecret,
      delivery: { id, attempt: 1 },
      requestId,
      trace: request.trace,
      spanAttributes: {
        'workflow_service.organization.id': organizationId,
        'workflow_service.webhook_source.id': sourceId,
        'workflow_service.delivery.id': id,
      },
      deadlineMs: VERIFICATION_DEADLINE_MS,
    })
    const { result, redact } = await sending.catch(async (error: unknown) => {
      if (!(error instanceof NotSentError)) throw error
      await removeUnsentDelivery(ctx.db, { organizationId, id, createdAt })
      throw serviceUnavailable(`${error.message} Nothing was sent. Try again in a moment.`, error)
    })
    const recorded = inFlightDelivery({
      id,
      organizationId,
      sourceId,
      kind: 'verification',
      requestBody: loggedBody,
      requestId,
      createdAt,
    })
    const outcome = toDeliveryResult(result, redact)
    // The request carried the secret, and the endpoint may repeat it: one too short to be recognized would be shown.
    const isShown = isRedactable(signingSecret)
    const rejectedAnswer = isShown ? (outcome.rejectedAnswer ?? null) : null
    const answerHeaders = isShown ? outcome.answerHeaders : null
    // Only answers to payloads are read by the agent.
    const delivery = await ctx.outcomes.record(recorded, { ...outcome, answer: null, rejectedAnswer, answerHeaders })
    reportDelivery(ctx, delivery)
    return { delivery, failure: toVerificationFailure(result, redact, rejectedAnswer) }
  } finally {
    slot()
  }
}

function toBody(request: VerificationRequest, signingSecret: string | null): WebhookVerification {
  return {
    type: VERIFICATION_TYPE,
    organization_id: request.organizationId,
    source_id: request.sourceId,
    data: { target_url: request.targetUrl, signing_secret: signingSecret, body_example: request.bodyExample },
  }
}
