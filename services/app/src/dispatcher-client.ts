import {
  ERROR_CODES,
  type ErrorCode,
  formatActor,
  INTERNAL_OPERATIONS,
  type InternalErrorBody,
  toTraceHeaders,
} from '@workflow-service/contract'
import { ApiError, type CheckedParts, serviceUnavailable, type Tracing } from '@workflow-service/service-kit'
import type { Static, TSchema } from 'typebox'

import type { Principal } from './auth/principal.ts'

type InternalOperations = typeof INTERNAL_OPERATIONS

/** What a call of an internal operation sends: its parts, as in the contract. */
export type DispatcherRequest<Id extends keyof InternalOperations> = Partial<CheckedParts<InternalOperations[Id]>> & {
  readonly requestId: string
}

type SchemasOf<Id extends keyof InternalOperations> = Extract<
  InternalOperations[Id]['successes'][number],
  { readonly schema: TSchema }
>['schema']

/** Client of the dispatcher's internal API (contract README, "Internal API"). */
export interface DispatcherClient {
  /**
   * Calls an operation once, without a retry, and resolves to the body of its answer; undefined if it has none.
   * @throws ApiError with the dispatcher's code, message, details and further members; 503 if it does not answer.
   */
  call<Id extends keyof InternalOperations>(id: Id, request: DispatcherRequest<Id>): Promise<Static<SchemasOf<Id>>>
}

/** A payload request takes 30 s at most, after 20 s of waiting for a slot. */
const TIMEOUT_MS = 60_000

export function createDispatcherClient({
  url,
  token,
  tracing,
}: {
  url: string
  token: string
  tracing: Pick<Tracing, 'current'>
}): DispatcherClient {
  return {
    call: async (id, request) => {
      const { method, path } = INTERNAL_OPERATIONS[id]
      const params = (request.params ?? {}) as Record<string, string>
      const filled = path.replaceAll(/\{(\w+)\}/g, (_part, name: string) => encodeURIComponent(params[name] ?? ''))
      const query = Object.entries(request.query ?? {}).filter(([, value]) => value !== undefined)
      const search = new URLSearchParams(query.map(([name, value]): [string, string] => [name, String(value)]))
      const response = await send(`${url.replace(/\/+$/, '')}${filled}?${search.toString()}`, {
        method: method.toUpperCase(),
        headers: {
          authorization: `Bearer ${token}`,
          'x-request-id': request.requestId,
          ...toTraceHeaders(tracing.current()),
          ...request.headers,
          ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const { status, text } = response
      const answer = parse(text)
      if (status >= 200 && status < 300) return answer as never
      throw toApiError(status, (answer as { error?: InternalErrorBody } | undefined)?.error)
    },
  }
}

/** Says who makes the change, for the audit event that the dispatcher records with it. */
export function actorHeaders({ userId, name, address }: Principal): { readonly 'X-Actor': string } {
  return { 'X-Actor': formatActor({ user_id: userId, name, address }) }
}

async function send(url: string, init: RequestInit): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(url, init)
    return { status: response.status, text: await response.text() }
  } catch (error) {
    throw serviceUnavailable('The dispatcher does not answer; try again in a moment.', error)
  }
}

function toApiError(status: number, error: InternalErrorBody | undefined): ApiError {
  if (!error || !Object.hasOwn(ERROR_CODES, error.code) || status === 401 || status >= 500) {
    const cause = new Error(`The dispatcher answered ${status} ${error?.code ?? ''}`)
    return serviceUnavailable(error?.message ?? 'The dispatcher cannot do this now; try again in a moment.', cause)
  }
  const { code, message, request_id: _requestId, details, ...extra } = error
  return new ApiError(code as ErrorCode, message, { extra, ...(details ? { details } : {}) })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
