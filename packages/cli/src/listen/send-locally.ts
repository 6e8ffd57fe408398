import { randomUUID } from 'node:crypto'
import { request as httpRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
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

const ANSWER_MAX_BYTES = 4_096

/**
 * Sends one POST as the dispatcher does (contract README, "Payload request"): the same headers, a new connection, no
 * redirects, at most 4 KiB of the answer, and the status decides. It differs in that it sends to any address. Never
 * rejects for what the endpoint does.
 */
export async function sendLocally(request: LocalRequest): Promise<LocalAnswer> {
  const { url, secret, deadlineMs, copyOf, requestId = randomUUID() } = request
  const startedMs = performance.now()
  const body = Buffer.from(JSON.stringify(request.body))
  // With a token of its own, a request has no signature.
  const signed = await createServiceHeaders(request.token === undefined ? secret : null, {
    deliveryId: randomUUID(),
    body,
  })
  const token = request.token ?? signed[SERVICE_TOKEN_HEADER] ?? null
  const answer = await new Promise<{ status: number; text: string } | { status: null; error: string }>((resolve) => {
    const options: RequestOptions = {
      method: 'POST',
      headers: {
        'X-Request-Id': requestId,
        ...(copyOf === undefined ? {} : { 'X-Copy-Of': copyOf }),
        ...signed,
        ...(token === null ? {} : { [SERVICE_TOKEN_HEADER]: token }),
        'Content-Type': 'application/json',
        'Content-Length': body.length,
        'User-Agent': 'workflow-service/1',
        'Accept-Encoding': 'identity',
        Connection: 'close',
      },
      agent: false,
      signal: AbortSignal.timeout(deadlineMs),
    }
    const send = new URL(url).protocol === 'https:' ? httpsRequest : httpRequest
    const outgoing = send(url, options)
    outgoing.on('error', (error) => resolve({ status: null, error: describe(error, deadlineMs) }))
    outgoing.on('response', (incoming) => {
      const status = incoming.statusCode ?? 0
      let text = ''
      const done = () => {
        resolve({ status, text })
        incoming.destroy()
      }
      incoming.setEncoding('utf8')
      incoming.on('data', (chunk: string) => {
        text += chunk
        if (text.length > ANSWER_MAX_BYTES) done()
      })
      for (const event of ['end', 'error', 'close']) incoming.on(event, done)
    })
    outgoing.end(body)
  })
  return { ...answer, token, durationMs: performance.now() - startedMs }
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there; start your endpoint',
  ENOTFOUND: 'its name does not exist',
  ECONNRESET: 'it closed the connection without an answer',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: name it in NODE_EXTRA_CA_CERTS, or use http',
}

function describe(error: Error & { code?: string; errors?: readonly { code?: string }[] }, deadlineMs: number): string {
  if (error.name === 'AbortError') return `no answer within ${deadlineMs / 1_000} s`
  const code = error.code ?? error.errors?.[0]?.code ?? error.message
  return REASONS[code] ?? `the request failed (${code})`
}
