import {
  type DeliveryOut,
  type TraceContext,
  VERIFICATION_DEADLINE_MS,
  VERIFICATION_TYPE,
  type WebhookVerification,
} from '@workflow-service/contract'
import { type AuditedBy, newId, recordVerification, removeUnsentDelivery } from '@workflow-service/database'
import { serviceUnavailable } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { inSlot } from '../in-slot.ts'
import {
  toDeliveryResult,
  toVerificationFailure,
  unanswered,
  type VerificationFailure,
} from '../deliveries/describe-outcome.ts'
import { inFlightDelivery } from '../deliveries/outcome-recorder.ts'
import { reportDelivery } from '../deliveries/report-delivery.ts'
import { isRedactable, REDACTED } from '../deliveries/redact.ts'
import { NotSentError, sendSignedRequest } from '../deliveries/send-signed-request.ts'
import { inTurn } from './in-turn.ts'

/** Shorter than a payload's: a person waits for the response to a save. */
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
  delivery: DeliveryOut
  failure: VerificationFailure | undefined
}

/**
 * Verifies a source in one of the slots for that: a source whose deliveries all hang can still be edited.
 * @throws ApiError 503 if this process is at its limit; nothing was sent then.
 */
export function inVerificationSlot<Result>(
  ctx: DispatcherContext,
  sourceId: string,
  work: () => Promise<Result>,
): Promise<Result> {
  return inSlot(ctx, `verification:${sourceId}`, work, SLOT_WAIT_MS)
}

/**
 * Sends one verification request, the only request that carries the secret, and logs it without the secret. The
 * organization must exist, and the caller have a slot. Implements contract README, "Verification request".
 * @throws ApiError 503 if this process could not open a connection; nothing was sent then.
 */
export async function verifySource(ctx: DispatcherContext, request: VerificationRequest): Promise<Verification> {
  const { organizationId, sourceId, signingSecret, requestId } = request
  const loggedBody = toBody(request, signingSecret === null ? null : REDACTED)
  const id = newId()
  const requestBody = JSON.stringify(loggedBody)
  const logged = { id, sourceId, requestBody, requestId }
  const createdAt = await inTurn(ctx, organizationId, () =>
    recordVerification(ctx.db, organizationId, logged, request.test),
  )
  const recorded = inFlightDelivery({
    id,
    organization_id: organizationId,
    source_id: sourceId,
    kind: 'verification',
    request_body: loggedBody,
    session_id: null,
    run_id: null,
    request_id: requestId,
    created_at: createdAt.toISOString(),
    resend_of: null,
    sent_by: null,
  })
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
    const notSent = unanswered('refused', `${error.message} Nothing was sent.`)
    await removeUnsentDelivery(ctx.db, recorded).catch(() => ctx.outcomes.record(recorded, notSent))
    throw serviceUnavailable(`${error.message} Nothing was sent. Try again in a moment.`, error)
  })
  const outcome = toDeliveryResult(result, redact)
  // The request carried the secret, and the endpoint may repeat it: one too short to be recognized would be shown.
  const isShown = isRedactable(signingSecret)
  const rejectedAnswer = isShown ? (outcome.rejected_answer ?? null) : null
  const answerHeaders = isShown ? outcome.answer_headers : null
  // Only answers to payloads are read by the agent.
  const delivery = await ctx.outcomes.record(recorded, {
    ...outcome,
    answer: null,
    rejected_answer: rejectedAnswer,
    answer_headers: answerHeaders,
  })
  reportDelivery(ctx, delivery)
  return { delivery, failure: toVerificationFailure(result, redact, rejectedAnswer) }
}

function toBody(request: VerificationRequest, signingSecret: string | null): WebhookVerification {
  return {
    type: VERIFICATION_TYPE,
    organization_id: request.organizationId,
    source_id: request.sourceId,
    data: { target_url: request.targetUrl, signing_secret: signingSecret, body_example: request.bodyExample },
  }
}
