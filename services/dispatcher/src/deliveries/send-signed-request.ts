import { toTraceHeaders, type TraceContext } from '@workflow-service/contract'
import type { SpanAttributes } from '@workflow-service/service-kit'
import { SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { type OutboundResult, type SentResult, toSentence } from '../outbound/outbound-result.ts'
import type { OutboundRequest } from '../outbound/send-request.ts'
import { createRedactor, type Redact } from './redact.ts'
import { signRequest } from './sign-request.ts'

/**
 * The service itself lacked something before a byte was sent, such as a file descriptor or a key of SECRETS_KEY. Not an
 * outcome: the record of the delivery is removed, and the caller may repeat the call. The message is a sentence for the
 * caller.
 */
export class NotSentError extends Error {
  override name = 'NotSentError'
}

type SendContext = Pick<DispatcherContext, 'sendRequest' | 'tracing' | 'logger'>

/** What connects a request with its cause. */
interface RequestOrigin {
  requestId: string
  trace: TraceContext | null
  spanAttributes: SpanAttributes
}

/** Sends a request in a span, with `X-Request-Id` and the headers of the trace. */
export async function sendTraced(
  { sendRequest, tracing, logger }: SendContext,
  request: OutboundRequest,
  { requestId, trace, spanAttributes }: RequestOrigin,
): Promise<OutboundResult> {
  const { method = 'POST', headers } = request
  const attributes = { 'http.request.method': method, ...spanAttributes }
  const result = await tracing.trace({ name: method, kind: 'client', attributes, parent: trace }, async (span) => {
    const allHeaders = { 'X-Request-Id': requestId, ...headers, ...toTraceHeaders(span.context) }
    const sent = await sendRequest({ ...request, headers: allHeaders })
    // Not the address: the path of an endpoint may be a secret.
    if (sent.kind === 'answered') span.set({ 'http.response.status_code': sent.status })
    if (sent.kind !== 'answered') span.fail(sent.kind)
    else if (sent.status < 200 || sent.status > 299) span.fail(String(sent.status))
    return sent
  })
  if ('internalDetail' in result) {
    logger.warn({ request_id: requestId, detail: result.internalDetail }, 'endpoint.not_reached')
  }
  return result
}

interface SignedRequest extends RequestOrigin {
  url: string
  /** JSON text. */
  body: string
  /** Null sends the request without a token. */
  signingSecret: string | null
  /** What the endpoint knows the payload by, and how often it was sent with this request. */
  delivery: { id: string; attempt: number }
  deadlineMs: number
  reuseKey?: string
}

/**
 * Sends one request with a new service token and signature (contract README, "Service token"). Returns its result and a
 * function that removes the secret and the token from texts of the endpoint.
 * @throws NotSentError if the service could not open a connection.
 */
export async function sendSignedRequest(
  ctx: SendContext,
  { url, body, signingSecret, delivery, deadlineMs, reuseKey, ...origin }: SignedRequest,
): Promise<{ result: SentResult; redact: Redact }> {
  const headers = signRequest(signingSecret, delivery, body)
  const { [SERVICE_TOKEN_HEADER]: token = null } = headers
  const result = await sendTraced(ctx, { url, body, headers, deadlineMs, reuseKey }, origin)
  if (result.kind === 'unavailable') throw new NotSentError(toSentence(result.detail))
  return { result, redact: createRedactor([signingSecret, token]) }
}
