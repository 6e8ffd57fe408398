import { ERROR_CODES, type ErrorCode, type ErrorStatus, type FieldError } from '@workflow-service/contract'

export interface ApiErrorOptions {
  details?: FieldError[]
  /** Further members of the error body, for the internal API only. */
  extra?: Record<string, unknown>
  headers?: Record<string, string>
  cause?: unknown
}

/** An answer that is an error: its code decides the status, its message is for the caller to read. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly status: ErrorStatus
  readonly details: FieldError[] | undefined
  readonly extra: Record<string, unknown> | undefined
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ApiError'
    this.code = code
    this.status = ERROR_CODES[code]
    this.details = options.details
    this.extra = options.extra
    this.headers = options.headers ?? {}
  }
}

/** 404, the same for what does not exist and for what belongs to another organization. */
export function notFound(what: string): ApiError {
  return new ApiError('not_found', `${what} not found.`)
}

/** 422 with every failing field. */
export function invalidFields(details: FieldError[]): ApiError {
  const [first] = details
  const rest = details.length > 1 ? ` (and ${details.length - 1} more)` : ''
  return new ApiError('validation_error', `${first?.field ?? 'body'} ${first?.message ?? 'is not valid'}${rest}.`, {
    details,
  })
}

/** 503 with `Retry-After`: a dependency is away, and the caller may repeat. */
export function serviceUnavailable(message: string, cause?: unknown): ApiError {
  return new ApiError('service_unavailable', message, { headers: { 'Retry-After': '1' }, cause })
}
