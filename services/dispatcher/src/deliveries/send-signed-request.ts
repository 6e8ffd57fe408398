import { toTraceHeaders, type TraceContext } from '@workflow-service/contract'
import type { SpanAttributes } from '@workflow-service/service-kit'
import { SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { SentResult } from '../outbound/outbound-result.ts'
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

interface SignedRequest {
  url: string
  /** JSON text. */
  body: string
  /** Null sends the request without a token. */
  signingSecret: string | null
  /** What the endpoint knows the payload by, and how often it was sent with this request. */
  delivery: { id: string; attempt: number }
  requestId: string
  trace: TraceContext | null
  spanAttributes: SpanAttributes
  deadlineMs: number
  reuseKey?: string
}

/**
 * Sends one request with a new service token and signature (contract README, "Service token"). Returns its result and a
 * function that removes the secret and the token from texts of the endpoint.
 * @throws NotSentError if the service could not open a connection.
 */
export async function sendSignedRequest(
  ctx: Pick<DispatcherContext, 'sendRequest' | 'tracing' | 'logger'>,
  { url, body, signingSecret, delivery, requestId, trace, spanAttributes, deadlineMs, reuseKey }: SignedRequest,
): Promise<{ result: SentResult; redact: Redact }> {
  const signed = signRequest(signingSecret, delivery, body)
  const { [SERVICE_TOKEN_HEADER]: token = null } = signed
  const headers = { 'X-Request-Id': requestId, ...signed }
  const attributes = { 'http.request.method': 'POST', ...spanAttributes }
  const start = { name: 'POST', kind: 'client', attributes, parent: trace } as const
  const result = await ctx.tracing.trace(start, async (span) => {
    const sent = await ctx.sendRequest({
      url,
      body,
      headers: { ...headers, ...toTraceHeaders(span.context) },
      deadlineMs,
      reuseKey,
    })
    // Not the address: the path of an endpoint may be a secret.
    if (sent.kind === 'answered') span.set({ 'http.response.status_code': sent.status })
    if (sent.kind !== 'answered') span.fail(sent.kind)
    else if (sent.status < 200 || sent.status > 299) span.fail(String(sent.status))
    return sent
  })
  if ('internalDetail' in result) {
    ctx.logger.warn({ request_id: requestId, detail: result.internalDetail }, 'endpoint.not_reached')
  }
  if (result.kind === 'unavailable') {
    throw new NotSentError(`${result.detail.slice(0, 1).toUpperCase()}${result.detail.slice(1)}.`)
  }
  return { result, redact: createRedactor([signingSecret, token]) }
}
