import type { DeliveryOut, ErrorResponse, WebhookSourceIn, WebhookSourceOut } from '@workflow-service/contract'
import got, { type Method, RequestError } from 'got'
import { Refusal } from './refusal.ts'

/** An answer of the dispatcher that is a refusal: what it said, and nothing of the request. */
export class DispatcherRefusal extends Refusal {
  override name = 'DispatcherRefusal'
  readonly code: string

  constructor(error: ErrorResponse['error']) {
    const details = error.details?.map(({ field, message }) => `${field} ${message}`) ?? []
    super(details.length > 1 ? details.join('; ') : error.message, error)
    this.code = error.code
  }
}

/** The part of the dispatcher's internal API (design 7) that `wf` uses. */
export interface DispatcherClient {
  /** Saves the source. `isNew` tells 201 from 200. @throws DispatcherRefusal */
  saveWebhookSource(
    organizationId: string,
    sourceId: string,
    source: WebhookSourceIn,
    verify: 'if_changed' | 'never',
  ): Promise<{ isNew: boolean; source: WebhookSourceOut }>
  /** Sends the verification request with what is stored. @throws DispatcherRefusal */
  testWebhookSource(organizationId: string, sourceId: string): Promise<DeliveryOut>
}

/** A save waits for its verification, at most 10 s (contract 4.5), and perhaps for another save. */
const TIMEOUT_MS = 30_000

/** Asks once and never again by itself: each save may send a request to a customer. */
export function createDispatcherClient({ url, token }: { url: string; token: string }): DispatcherClient {
  const call = async (
    method: Method,
    path: string,
    options: { json?: object; searchParams?: Record<string, string> } = {},
  ): Promise<{ status: number; body: unknown }> => {
    const { statusCode, body } = await answerOf(method, `${url.replace(/\/$/, '')}/${path}`, options)
    const answer = parse(body)
    if (statusCode >= 200 && statusCode < 300 && answer !== undefined) return { status: statusCode, body: answer }
    const { error } = (answer ?? {}) as Partial<ErrorResponse>
    if (statusCode === 401) {
      throw new Refusal(
        `The dispatcher at ${url} does not know the token: INTERNAL_API_TOKEN must be the one it runs with.`,
      )
    }
    if (error) throw new DispatcherRefusal(error)
    throw new Refusal(`What answers at ${url} is no dispatcher (status ${statusCode}): check DISPATCHER_URL.`)
  }

  const answerOf = async (method: Method, target: string, options: object) => {
    try {
      return await got(target, {
        method,
        ...options,
        headers: { authorization: `Bearer ${token}` },
        responseType: 'text',
        retry: { limit: 0 },
        timeout: { request: TIMEOUT_MS },
        followRedirect: false,
        throwHttpErrors: false,
      })
    } catch (error) {
      // Without the cause: got's errors carry the request with the token and the secret.
      const why = error instanceof RequestError ? error.code : String(error)
      throw new Refusal(
        `The dispatcher at ${url} does not answer (${why}): is it running? DISPATCHER_URL says where it is.`,
      )
    }
  }

  return {
    saveWebhookSource: async (organizationId, sourceId, source, verify) => {
      const path = sourcePath(organizationId, sourceId)
      const { status, body } = await call('PUT', path, { json: source, searchParams: { verify } })
      return { isNew: status === 201, source: body as WebhookSourceOut }
    },
    testWebhookSource: async (organizationId, sourceId) => {
      const { body } = await call('POST', `${sourcePath(organizationId, sourceId)}/test`)
      return body as DeliveryOut
    },
  }
}

function sourcePath(organizationId: string, sourceId: string): string {
  return `internal/organizations/${organizationId}/webhook-sources/${sourceId}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
