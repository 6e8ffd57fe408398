import type { ServerResponse } from 'node:http'
import {
  ERROR_CODES,
  ERROR_DETAILS_MAX,
  type ErrorCode,
  type ErrorResponse,
  type ErrorStatus,
  type FieldError,
  START_CONFLICTS,
} from '@workflow-service/contract'
import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import { describeError, type Logger } from '../logger.ts'
import { writeJson } from './write-json.ts'

export interface ApiErrorOptions {
  details?: FieldError[]
  /** Further members of the error body; not for the public API. */
  extra?: Record<string, unknown>
  headers?: Record<string, string>
  cause?: unknown
}

/** An error response: its code decides the status, its message is for the caller. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: ErrorCode
  readonly status: ErrorStatus
  readonly details: FieldError[] | undefined
  readonly extra: Record<string, unknown> | undefined
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = ERROR_CODES[code]
    this.details = options.details
    this.extra = options.extra
    this.headers = options.headers ?? {}
  }
}

/** Creates a 404, the same for a resource that does not exist and for one of another organization. */
export function notFound(what: string): ApiError {
  return new ApiError('not_found', `${what} not found.`)
}

/**
 * Returns what was looked for.
 * @throws ApiError 404 if it is undefined.
 */
export function orNotFound<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw notFound(what)
  return value
}

/**
 * Creates a 422 with the violation of each failing field, ERROR_DETAILS_MAX at most: a body of many unknown fields must
 * not make a response larger than itself. The message counts all of them, and `omittedCount` more.
 */
export function invalidFields(violations: readonly FieldError[], omittedCount = 0): ApiError {
  const [first] = violations
  const others = violations.length + omittedCount - 1
  const left = violations.length + omittedCount - ERROR_DETAILS_MAX
  const more = left > 0 ? `${others} more, of which details leaves out ${left}` : `${others} more`
  const rest = others > 0 ? ` (and ${more})` : ''
  const what = first ? describeFieldError(first) : 'body is not valid'
  return new ApiError('validation_error', `${what}${rest}.`, { details: violations.slice(0, ERROR_DETAILS_MAX) })
}

/**
 * Puts a field before its message, which is a predicate ("must be a string") or a sentence ("The URL must not be
 * empty").
 */
export function describeFieldError({ field, message }: Pick<FieldError, 'field' | 'message'>): string {
  return `${field}${/^\p{Lu}/u.test(message) ? ':' : ''} ${message}`
}

/** Creates the refusal of a start, the same for the API and the application. */
export function startRefused(
  refusal: 'workflow_not_found' | 'session_not_found' | keyof typeof START_CONFLICTS,
): ApiError {
  if (refusal === 'workflow_not_found') return notFound('Workflow')
  if (refusal !== 'session_not_found') return new ApiError(refusal, START_CONFLICTS[refusal])
  const message = 'must be an open session of your organization'
  return invalidFields([{ field: 'session_id', code: 'not_found', message }])
}

/** Creates a 403: nothing of the organization runs or is sent. */
export function organizationSuspended(): ApiError {
  return new ApiError(
    'organization_suspended',
    'The organization is suspended. Ask the operator of the service to resume it.',
  )
}

/** Creates a 503 with `Retry-After`: a dependency is unavailable, and the caller may retry. */
export function serviceUnavailable(message: string, cause?: unknown): ApiError {
  return new ApiError('service_unavailable', message, { headers: { 'Retry-After': '1' }, cause })
}

/** Creates the body of an error response (contract README, "Errors"). */
export function toErrorResponse(error: ApiError, requestId: string): ErrorResponse {
  return {
    error: {
      code: error.code,
      message: error.message,
      request_id: requestId,
      ...(error.details ? { details: error.details } : {}),
      ...error.extra,
    },
  }
}

/** Writes an error on Node's own response: some errors happen before Express sees the request. */
export function writeError(
  res: ServerResponse,
  error: ApiError,
  requestId: string,
  headers: readonly string[] = [],
): void {
  void writeJson(res, {
    status: error.status,
    body: JSON.stringify(toErrorResponse(error, requestId)),
    requestId,
    headers: [...Object.entries(error.headers).flat(), ...headers],
  })
}

/** Answers with the error and the headers of `res.locals.responseHeaders` (names and values in turn). */
export function sendError(res: Response, error: ApiError): void {
  writeError(res, error, res.locals.requestId, res.locals.responseHeaders)
}

/** Passes an ApiError on and turns any other error into one; an unexpected error becomes a 500 without its message. */
function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof URIError) {
    return new ApiError('invalid_request', 'The path and the query must be percent-encoded UTF-8.')
  }
  // Statuses of Express, which are not in the contract.
  const status = error instanceof Error && 'status' in error ? Number(error.status) : 500
  if (status >= 400 && status < 500) {
    return new ApiError('invalid_request', 'The request cannot be read.')
  }
  return new ApiError('internal_error', 'Something went wrong on our side.', { cause: error })
}

const UNKNOWN_PATH = /^[A-Z]+ \/\S* not found\.$/

/** Whether an error of any of our services is of a path that it does not have, as at a wrong DISPATCHER_URL. */
export function isUnknownPath({ code, message }: { readonly code: string; readonly message: string }): boolean {
  return code === 'not_found' && UNKNOWN_PATH.test(message)
}

/** Answers 404 to every path and method that no route has taken: see `isUnknownPath`. */
export const handleNotFound: RequestHandler = (req, _res, next) => {
  next(notFound(`${req.method} ${req.path}`))
}

/** Answers every error in the contract's error shape, as `toReportedError` sees it. */
export function handleErrors(
  logger: Logger,
  isDatabaseUnavailable: (error: unknown) => boolean = () => false,
): ErrorRequestHandler {
  return (thrown, _req, res, _next) => {
    const error = toReportedError(thrown, { logger, isDatabaseUnavailable, requestId: res.locals.requestId })
    if (res.headersSent) {
      if (!res.writableEnded) res.destroy()
      return
    }
    sendError(res, error)
  }
}

/**
 * Turns what a handler threw into the response's error, and logs it if the response is 500 or above. An error of a
 * database that does not answer is a 503.
 */
export function toReportedError(
  thrown: unknown,
  {
    logger,
    isDatabaseUnavailable,
    requestId,
  }: { logger: Logger; isDatabaseUnavailable: (error: unknown) => boolean; requestId: string },
): ApiError {
  // An ApiError may have an error of the database as its cause, which is logged.
  const isUnavailable = !(thrown instanceof ApiError) && isDatabaseUnavailable(thrown)
  const error = isUnavailable
    ? serviceUnavailable('The database does not answer; try again in a moment.', thrown)
    : toApiError(thrown)
  if (error.status >= 500) {
    // Refused by a limit, as thousands are in an overload: the stack would say nothing.
    const isRefused = error.status === 503 && error.cause === undefined
    const described = isRefused ? { message: error.message } : describeError(error.cause ?? error)
    const fields = { request_id: requestId, error: described, code: error.code }
    logger[error.status === 500 ? 'error' : 'warn'](fields, 'request.failed')
  }
  return error
}

/** Creates the refusal of a body that is too large. */
export function bodyTooLarge(maxBytes: number): ApiError {
  return new ApiError('body_too_large', `The body is larger than ${Math.round(maxBytes / 1024)} KiB.`)
}
