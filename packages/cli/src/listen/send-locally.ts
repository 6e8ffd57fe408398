import { randomUUID } from 'node:crypto'
import { createServiceHeaders, SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'

/** A request to an endpoint under development. */
export interface LocalRequest {
  readonly url: string
  readonly body: object
  /** The value of `X-Service-Token`; null sends none. Default: a new one for the secret. */
  readonly token?: string | null
  readonly secret: string | null
  readonly deadlineMs: number
  /** The id of the delivery of which this is a copy. */
  readonly copyOf?: string
  readonly requestId?: string
}

/** What the endpoint answered, or why it did not. */
export type LocalAnswer = { readonly durationMs: number; readonly token: string | null } & (
  | { readonly status: number; readonly text: string; readonly error?: undefined }
  | { readonly status: null; readonly error: string }
)

/**
 * Sends one POST with the headers of the dispatcher (contract README, "Payload request"), to any address, without
 * redirects; the status decides. Never rejects for what the endpoint does.
 */
export async function sendLocally(request: LocalRequest): Promise<LocalAnswer> {
  const { url, secret, deadlineMs, copyOf, requestId = randomUUID() } = request
  const startedMs = performance.now()
  const body = JSON.stringify(request.body)
  // With a token of its own, a request has no signature.
  const signed = await createServiceHeaders(request.token === undefined ? secret : null, {
    deliveryId: randomUUID(),
    body,
  })
  const token = request.token ?? signed[SERVICE_TOKEN_HEADER] ?? null
  const headers = {
    'X-Request-Id': requestId,
    ...(copyOf === undefined ? {} : { 'X-Copy-Of': copyOf }),
    ...signed,
    ...(token === null ? {} : { [SERVICE_TOKEN_HEADER]: token }),
    'Content-Type': 'application/json',
    'User-Agent': 'workflow-service/1',
  }
  const signal = AbortSignal.timeout(deadlineMs)
  const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal }).then(
    async (response) => ({ status: response.status, text: await response.text().catch(() => '') }),
    (error: Error & { cause?: { message?: string; code?: string } }) => {
      const { message, code } = error.cause ?? {}
      return { status: null, error: message || code || error.message }
    },
  )
  return { ...answer, token, durationMs: performance.now() - startedMs }
}
