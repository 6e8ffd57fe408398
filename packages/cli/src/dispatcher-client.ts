import {
  type DeliveryOut,
  type ErrorResponse,
  formatActor,
  type WebhookSourceIn,
  type WebhookSourceOut,
} from '@workflow-service/contract'
import { newId, OPERATOR } from '@workflow-service/database'
import { describeFieldError } from '@workflow-service/service-kit'
import got, { type Method, RequestError } from 'got'
import { CliError } from './cli-error.ts'

/** An error response of the dispatcher. Contains nothing of the request, which may contain a secret. */
export class DispatcherError extends CliError {
  override name = 'DispatcherError'
  readonly code: string

  constructor(error: ErrorResponse['error']) {
    const details = error.details?.map(describeFieldError) ?? []
    super(details.length > 1 ? details.join('; ') : error.message, error)
    this.code = error.code
  }
}

/** The operations of the dispatcher's internal API that `wf` uses (contract README, "Internal API"). */
export interface DispatcherClient {
  /**
   * Saves the source. `isNew`: whether it was created. With `version`, another stored version is refused (0: the source must be
   * new). @throws DispatcherError
   */
  saveWebhookSource(
    organizationId: string,
    sourceId: string,
    source: WebhookSourceIn,
    verify: 'if_changed' | 'never',
    version?: number,
  ): Promise<{ isNew: boolean; source: WebhookSourceOut }>
  /** Sends the verification request of the stored source, as the operator. @throws DispatcherError */
  testWebhookSource(organizationId: string, sourceId: string): Promise<DeliveryOut>
  /** Sends a payload that belongs to no run, once. @throws DispatcherError */
  sendPayload(organizationId: string, sourceId: string, payload: object): Promise<DeliveryOut>
}

/** A save waits for the verification request, at most 10 s, and possibly for another save of the source. */
const TIMEOUT_MS = 30_000
/** A payload may wait for a slot, and then 30 s for its endpoint. */
const PAYLOAD_TIMEOUT_MS = 90_000

interface CallOptions {
  readonly json?: object
  readonly searchParams?: Record<string, string>
  readonly headers?: Record<string, string>
  readonly timeoutMs?: number
}

/** Creates a client that never retries, because each save may send a request to a customer's endpoint. */
export function createDispatcherClient({ url, token }: { url: string; token: string }): DispatcherClient {
  const call = async (
    method: Method,
    path: string,
    options: CallOptions = {},
  ): Promise<{ status: number; body: unknown }> => {
    const { statusCode, body } = await send(method, `${url.replace(/\/$/, '')}/${path}`, options)
    const answer = parse(body)
    if (statusCode >= 200 && statusCode < 300 && answer !== undefined) return { status: statusCode, body: answer }
    const { error } = (answer ?? {}) as Partial<ErrorResponse>
    if (statusCode === 401) {
      throw new CliError(
        `The dispatcher at ${url} rejected the token. Set INTERNAL_API_TOKEN to the value that the dispatcher has.`,
      )
    }
    if (error) throw new DispatcherError(error)
    throw new CliError(`The server at ${url} is not a dispatcher (it answered ${statusCode}). Check DISPATCHER_URL.`)
  }

  const send = async (method: Method, target: string, { timeoutMs = TIMEOUT_MS, ...options }: CallOptions) => {
    try {
      return await got(target, {
        method,
        ...options,
        headers: { authorization: `Bearer ${token}`, ...options.headers },
        responseType: 'text',
        retry: { limit: 0 },
        timeout: { request: timeoutMs },
        followRedirect: false,
        throwHttpErrors: false,
      })
    } catch (error) {
      // The cause is dropped, because got's errors contain the request with the token and the signing secret.
      const reason = error instanceof RequestError ? error.code : String(error)
      throw new CliError(
        `The dispatcher at ${url} does not answer (${reason}). Check that it is running and that DISPATCHER_URL is right.`,
      )
    }
  }

  return {
    saveWebhookSource: async (organizationId, sourceId, source, verify, version) => {
      const path = sourcePath(organizationId, sourceId)
      const searchParams = { verify, ...(version === undefined ? {} : { version: String(version) }) }
      const { status, body } = await call('PUT', path, { json: source, searchParams })
      return { isNew: status === 201, source: body as WebhookSourceOut }
    },
    testWebhookSource: async (organizationId, sourceId) => {
      const actor = formatActor({ user_id: null, name: OPERATOR.name, address: null })
      const path = `${sourcePath(organizationId, sourceId)}/test`
      const { body } = await call('POST', path, { headers: { 'X-Actor': actor } })
      return body as DeliveryOut
    },
    sendPayload: async (organizationId, sourceId, payload) => {
      const json = { organization_id: organizationId, source_id: sourceId, payload }
      const { body } = await call('PUT', `internal/deliveries/${newId()}`, { json, timeoutMs: PAYLOAD_TIMEOUT_MS })
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
