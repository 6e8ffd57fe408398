import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import type { AppErrorBody, AppOperationId, AppRequest, AppResponseBody } from '@workflow-service/contract'

/** An error response of the application's API, or a request without a response (status 0). */
export class AppError extends Error {
  readonly status: number
  /** A code of the contract, `unreachable` without a response, or `unexpected` for one in another shape. */
  readonly code: string
  /** The message for each failing field. */
  readonly details: Readonly<Record<string, string>>
  /** The whole error: a conflict has the current object in it, a failed verification its cause. */
  readonly body: Partial<AppErrorBody>

  constructor(status: number, body: Partial<AppErrorBody>) {
    super(body.message ?? unexpectedText(status))
    this.name = 'AppError'
    this.status = status
    this.code = body.code ?? 'unexpected'
    this.details = Object.fromEntries((body.details ?? []).map((detail) => [detail.field, textOf(detail)]))
    this.body = body
  }
}

/** The words for a response of what is between the page and the service, such as a proxy. */
function unexpectedText(status: number): string {
  if (status === 413) return 'This is too large to be sent (413). Make it shorter, then try again.'
  return `The server answered with status ${status}. ${status < 500 ? 'Ask your operator.' : 'Wait a moment, then try again.'}`
}

/** What a person reads at the field where the server's words name the rule of the schema. */
function textOf({ field, code, message }: NonNullable<AppErrorBody['details']>[number]): string {
  const isEmail = field === 'email' && ['string_too_short', 'string_pattern_mismatch'].includes(code)
  if (isEmail) return 'Enter an email address.'
  return message === 'must have at least 1 character' ? 'Required.' : message
}

/** The errors of fields that the page finds itself, before it sends a request. */
export function invalidFields(messages: Readonly<Record<string, string>>): AppError {
  const details = Object.entries(messages).map(([field, message]) => ({ field, code: 'invalid', message }))
  return new AppError(422, { code: 'validation_error', message: details[0]?.message ?? '', details })
}
export const invalid = (field: string, message: string) => invalidFields({ [field]: message })

/** The words for an error that is not one of a field. */
export function describeError(error: unknown): string {
  if (!(error instanceof AppError)) return 'Something went wrong on this page. Reload it, then try again.'
  if (error.code === 'forbidden_for_role') return 'Your role does not allow this. Ask an admin of your organization.'
  if (error.code === 'not_found') return 'This does not exist, or you have no access to it.'
  if (error.code === 'id_taken') {
    return 'An earlier attempt succeeded and its answer did not arrive, or this was deleted meanwhile. Look before you begin anew.'
  }
  return error.message
}

/** The parts of a request that an operation needs. Every query parameter is optional except a version. */
export type CallRequest<Id extends AppOperationId> = Omit<AppRequest<Id>, 'query'> &
  (AppRequest<Id> extends { query: infer Query }
    ? object extends Query
      ? { query?: Query }
      : { query: Query }
    : unknown)

/** The arguments after the operation: the request can be omitted if nothing in it is required. */
export type RequestArgument<Id extends AppOperationId> =
  object extends CallRequest<Id> ? [request?: CallRequest<Id>] : [request: CallRequest<Id>]

let shownOrganizationId = ''
/** Says which organization the page shows: a change is refused if the sign-in is in another one by then. */
export const setShownOrganization = (id: string) => void (shownOrganizationId = id)

/** Calls an operation. Rejects with an AppError, or with the signal's reason once it is aborted. */
export async function call<Id extends AppOperationId>(
  id: Id,
  request: CallRequest<Id>,
  signal?: AbortSignal,
): Promise<AppResponseBody<Id>> {
  const { params, query, body } = request as {
    params?: Record<string, string>
    query?: Record<string, string | number | undefined>
    body?: unknown
  }
  const { method, path } = APP_ROUTES[id]
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''))
  const search = new URLSearchParams(
    Object.entries(query ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
  const response = await fetch(search.size > 0 ? `${url}?${search}` : url, {
    method: method.toUpperCase(),
    // Every method but GET needs this type, also without a body (contract README, "Application").
    ...(method === 'get'
      ? {}
      : { headers: { 'content-type': 'application/json', 'x-organization-id': shownOrganizationId } }),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw new AppError(0, {
      code: 'unreachable',
      message: 'The server cannot be reached. Check your connection, then try again.',
    })
  })
  if (response.status === 204) return undefined as AppResponseBody<Id>
  const json: unknown = await response.json().catch(() => undefined)
  if (response.ok && json !== undefined) return json as AppResponseBody<Id>
  const requestId = response.headers.get('x-request-id') ?? undefined
  throw new AppError(response.status, { request_id: requestId, ...(json as { error?: AppErrorBody })?.error })
}
