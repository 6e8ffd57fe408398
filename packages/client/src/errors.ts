import type { RateLimit } from './rate-limit.ts'
import type { ErrorCode, FieldError } from './types.ts'

/** What every error of a call knows about the call. */
export interface CallFacts {
  /** The `Idempotency-Key` of a start; undefined for reads. */
  readonly idempotencyKey?: string | undefined
  /** Requests sent, the first one included. */
  readonly attempts: number
}

/**
 * Base of all errors of a call. After a failed start, call again with the same `idempotencyKey`: it starts at most
 * once, also if the failed call did reach the service. The service remembers the key for 24 hours.
 */
export class WorkflowServiceError extends Error implements CallFacts {
  override name = 'WorkflowServiceError'
  readonly idempotencyKey: string | undefined
  readonly attempts: number

  constructor(message: string, { idempotencyKey, attempts }: CallFacts, options?: { cause?: unknown }) {
    super(message, options)
    this.idempotencyKey = idempotencyKey
    this.attempts = attempts
  }
}

/** The service answered with an error. Match on `code` or `status`, never on `message`. */
export class ApiError extends WorkflowServiceError {
  override name = 'ApiError'
  readonly status: number
  readonly code: ErrorCode
  /** The fields that failed validation; empty except for `validation_error`. */
  readonly details: readonly FieldError[]
  /** Identifies the request in the service's logs; null if the answer has none. */
  readonly requestId: string | null
  /** How long the service asks to wait; null if it does not. */
  readonly retryAfterMs: number | null
  /** The key's limit of requests; null if the answer does not have it. */
  readonly rateLimit: RateLimit | null

  constructor(answer: ApiErrorAnswer, facts: CallFacts) {
    const { status, code, message, details = [], requestId = null, retryAfterMs = null, rateLimit = null } = answer
    // The service's message names the first field.
    const others = details.slice(0, 3).filter((detail) => !message.includes(detail.message))
    const fields = others.map((detail) => ` ${detail.field}: ${detail.message}.`)
    super(`${status} ${code}: ${message}${fields.join('')}${requestId ? ` (request ${requestId})` : ''}`, facts)
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
    this.retryAfterMs = retryAfterMs
    this.rateLimit = rateLimit
  }
}

export interface ApiErrorAnswer {
  readonly status: number
  readonly code: ErrorCode
  readonly message: string
  readonly details?: readonly FieldError[] | undefined
  readonly requestId?: string | null | undefined
  readonly retryAfterMs?: number | null | undefined
  readonly rateLimit?: RateLimit | null | undefined
}

/** No complete answer arrived. A start may or may not be recorded: repeat it with the same `idempotencyKey`. */
export class ConnectionError extends WorkflowServiceError {
  override name = 'ConnectionError'
}

/** No answer arrived in time: see `timeoutMs` and `totalTimeoutMs`. */
export class TimeoutError extends ConnectionError {
  override name = 'TimeoutError'
}

/** The caller's `signal` ended the call; `cause` is its reason. A start may or may not be recorded. */
export class AbortError extends WorkflowServiceError {
  override name = 'AbortError'
}
