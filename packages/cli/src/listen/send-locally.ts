import { randomUUID } from 'node:crypto'
import { PAYLOAD_DEADLINE_MS, VERIFICATION_DEADLINE_MS } from '@workflow-service/contract/limits'
import { createServiceHeaders, SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'
import { UsageError } from '../cli-error.ts'

/** A request to an endpoint under development. */
export interface LocalRequest {
  readonly url: string
  readonly body: object
  /** The value of `X-Service-Token`; null sends none. Default: a new one for the secret. */
  readonly token?: string | null
  readonly secret: string | null
  readonly kind: 'verification' | 'payload'
  /** The id of the delivery of which this is a copy. */
  readonly copyOf?: string
  readonly requestId?: string
  /** Ends the request before its deadline. */
  readonly interrupted: AbortSignal
}

/** What the endpoint answered, or why it did not. */
export type LocalAnswer = { readonly durationMs: number; readonly token: string | null } & (
  | { readonly status: number; readonly text: string; readonly error?: undefined }
  | { readonly status: null; readonly error: string }
)

/**
 * Sends one POST with the headers of the dispatcher (contract README, "Payload request"), to any address, without
 * redirects; the status decides. Never rejects for what the endpoint does.
 * @throws UsageError for a port that fetch refuses, such as 6000
 */
export async function sendLocally(request: LocalRequest): Promise<LocalAnswer> {
  const { url, secret, kind, copyOf, requestId = randomUUID() } = request
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
  const deadlineMs = kind === 'verification' ? VERIFICATION_DEADLINE_MS : PAYLOAD_DEADLINE_MS
  const signal = AbortSignal.any([request.interrupted, AbortSignal.timeout(deadlineMs)])
  const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal }).then(
    async ({ status, body: stream }) => ({ status, text: await readStart(stream) }),
    (error: Error & { cause?: { message?: string; code?: string } }) => {
      const { message, code } = error.cause ?? {}
      if (message === 'bad port') throw new UsageError(`fetch refuses the port of ${url}; use another one.`)
      return { status: null, error: message || code || error.message }
    },
  )
  return { ...answer, token, durationMs: performance.now() - startedMs }
}

const ANSWER_MAX_BYTES = 4_096

/** Reads as much of an answer as the dispatcher does, or what arrived of one that breaks off. */
async function readStart(stream: AsyncIterable<Uint8Array> | null): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let left = ANSWER_MAX_BYTES
  try {
    for await (const chunk of stream ?? []) {
      text += decoder.decode(chunk.subarray(0, left), { stream: true })
      left -= chunk.length
      // Leaving the loop cancels the rest: an endpoint may send without end.
      if (left <= 0) break
    }
  } catch {
    // The status decides.
  }
  return text
}
