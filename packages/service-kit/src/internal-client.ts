import { INTERNAL_OPERATIONS, type InternalErrorBody, parseJson } from '@workflow-service/contract'
import got, { RequestError } from 'got'
import type { TSchema } from 'typebox'
import type { Static } from '@workflow-service/contract/type'
import type { CheckedParts } from './http/check-request.ts'
import { describeFieldError, isUnknownPath } from './http/errors.ts'

type InternalOperations = typeof INTERNAL_OPERATIONS

/** What a call of an internal operation sends: its parts, as in the contract. */
export type InternalRequest<Id extends keyof InternalOperations> = Partial<CheckedParts<InternalOperations[Id]>> & {
  readonly requestId?: string
  /** Ends the wait for the response. The dispatcher may have got the call. */
  readonly signal?: AbortSignal
}

type SchemasOf<Id extends keyof InternalOperations> = Extract<
  InternalOperations[Id]['successes'][number],
  { readonly schema: TSchema }
>['schema']

export interface InternalResponse<Id extends keyof InternalOperations> {
  readonly status: number
  /** Undefined if the operation has none. */
  readonly body: Static<SchemasOf<Id>>
}

/** A call without success. It has nothing of the request, which may carry a signing secret. */
export class InternalCallError extends Error {
  override name = 'InternalCallError'
  /** Undefined if no response came. */
  readonly status: number | undefined
  /** What the dispatcher reported; undefined if no dispatcher responded, or if it does not know the token. */
  readonly body: InternalErrorBody | undefined

  constructor(message: string, status?: number, body?: InternalErrorBody) {
    super(message)
    this.status = status
    this.body = body
  }
}

/** Client of the dispatcher's internal API (contract README, "Internal API"). */
export interface InternalClient {
  /**
   * Calls an operation once: no redirect, and no retry, because most calls send a request to a customer's endpoint.
   * @throws InternalCallError
   */
  call<Id extends keyof InternalOperations>(id: Id, request: InternalRequest<Id>): Promise<InternalResponse<Id>>
}

/** A payload waits for a slot, up to 20 s, and then 30 s for its endpoint. */
const TIMEOUT_MS = 60_000

export interface InternalClientOptions {
  readonly url: string
  /** One of the dispatcher's tokens. */
  readonly token: string
  /** Further headers of each call. */
  readonly headersOf?: () => Readonly<Record<string, string>>
}

/** Creates the client of everything but runs, which have a hot path of their own in the runner. */
export function createInternalClient({ url, token, headersOf = () => ({}) }: InternalClientOptions): InternalClient {
  return {
    call: async (id, { params = {}, query = {}, headers, body, requestId, signal }) => {
      const { method, path } = INTERNAL_OPERATIONS[id]
      const values = params as Readonly<Record<string, unknown>>
      const filled = path.replaceAll(/\{(\w+)\}/g, (_part, name: string) => encodeURIComponent(String(values[name])))
      const given = Object.entries(query).filter(([, value]) => value !== undefined)
      const response = await got(`${url.replace(/\/+$/, '')}${filled}`, {
        method,
        searchParams: Object.fromEntries(given.map(([name, value]): [string, string] => [name, String(value)])),
        headers: {
          ...headersOf(),
          ...headers,
          authorization: `Bearer ${token}`,
          ...(requestId === undefined ? {} : { 'x-request-id': requestId }),
        },
        ...(body === undefined ? {} : { json: body }),
        responseType: 'text',
        retry: { limit: 0 },
        timeout: { request: TIMEOUT_MS },
        followRedirect: false,
        throwHttpErrors: false,
        signal,
      }).catch((error: unknown) => {
        // Only the code: got's errors carry the request, and with it the token and the signing secret.
        const reason = error instanceof RequestError ? error.code : String(error)
        throw new InternalCallError(
          `The dispatcher at ${url} does not answer (${reason}). Check that it is running and that DISPATCHER_URL is right.`,
        )
      })
      const { statusCode: status } = response
      const parsed = parseJson(response.body)
      if (status === 204 || (status >= 200 && status < 300 && parsed !== undefined)) {
        return { status, body: parsed as never }
      }
      throw toCallError(url, status, (parsed as { error?: InternalErrorBody } | undefined)?.error)
    },
  }
}

function toCallError(url: string, status: number, error: InternalErrorBody | undefined): InternalCallError {
  if (status === 401) {
    const message = `The dispatcher at ${url} rejected the token. Set INTERNAL_API_TOKEN to the value that the dispatcher has.`
    return new InternalCallError(message, status)
  }
  if (!error || isUnknownPath(error)) {
    const message = `The server at ${url} is not a dispatcher of this release (it answered ${status}). Check DISPATCHER_URL.`
    return new InternalCallError(message, status)
  }
  const details = error.details?.map(describeFieldError) ?? []
  return new InternalCallError(details.length > 1 ? details.join('; ') : error.message, status, error)
}
