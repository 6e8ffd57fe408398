import { AbortError, ApiError, type CallFacts, ConnectionError, TimeoutError } from './errors.ts'
import { type RateLimit, readRateLimit } from './rate-limit.ts'
import type { ErrorCode, FieldError } from './types.ts'

/** The part of `fetch` that the client uses: the global one, undici's and most wrappers fit. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; redirect: 'manual'; signal: AbortSignal },
) => Promise<{ status: number; headers: { get(name: string): string | null }; text(): Promise<string> }>

/** One call: sent until it is answered, with the same headers each time. */
export interface ApiRequest {
  readonly fetch: Fetch
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** Whether a response with the status of a success has the body of one. */
  readonly isExpected: (body: Record<string, unknown>) => boolean
  readonly headers: Record<string, string>
  readonly body?: string
  readonly idempotencyKey?: string
  readonly maxRetries: number
  readonly timeoutMs: number
  readonly totalTimeoutMs: number
  /** By `performance.now()`, for one of several requests of a call. Default: `totalTimeoutMs` from now. */
  readonly endsAt?: number
  readonly signal?: AbortSignal
  readonly onRequest?: Hooks['onRequest']
  readonly onAnswer?: Hooks['onAnswer']
}

/** What a request looks like to hooks. It has no header and no body: keys and texts stay out of logs. */
export interface SentRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** 1 for the first one of the call. */
  readonly attempt: number
  readonly idempotencyKey: string | undefined
}

/** How an attempt ended: with an answer, with the error that no answer arrived, or by the caller's `signal`. */
export interface ReceivedAnswer extends SentRequest {
  readonly ms: number
  /** Null without an answer. */
  readonly status: number | null
  readonly requestId: string | null
  readonly rateLimit: RateLimit | null
  /** Null for an answer that is a success. */
  readonly error: ApiError | ConnectionError | AbortError | null
}

/** Called for each attempt, for logs and metrics. What they throw, or reject with, is ignored. */
export interface Hooks {
  onRequest?: ((request: SentRequest) => void) | undefined
  onAnswer?: ((answer: ReceivedAnswer) => void) | undefined
}

/** What a call resolves with, and what the headers of its response said. */
export interface Received {
  readonly value: unknown
  readonly requestId: string | null
  readonly rateLimit: RateLimit | null
}

/** The service's own transient responses, and those of a proxy that does not reach it. 409 is final. */
const RETRIED_STATUSES = new Set([429, 500, 502, 503, 504])

const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 8000
/** `setTimeout` fires at once for a longer time. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Sends the request, and again after a connection error, a time-out or a transient response, with growing, random
 * delays of at least `Retry-After`. Gives up after `maxRetries`, or if the next delay would not fit into
 * `totalTimeoutMs`. Rejects with the last attempt's error.
 */
export async function sendRequest(request: ApiRequest): Promise<Received> {
  const { method, url, idempotencyKey, timeoutMs, totalTimeoutMs, signal } = request
  const { endsAt = performance.now() + totalTimeoutMs } = request
  for (let attempts = 1; ; attempts += 1) {
    const facts: CallFacts = { idempotencyKey, attempts: signal?.aborted ? attempts - 1 : attempts }
    const remainingMs = endsAt - performance.now()
    let response: AttemptResponse | undefined
    let result: Received | ApiError | ConnectionError | AbortError
    const sent: SentRequest = { method, url, attempt: attempts, idempotencyKey }
    const sentAt = performance.now()
    const isSent = !signal?.aborted
    if (isSent) void call(request.onRequest, sent)
    try {
      response = await within(Math.min(timeoutMs, remainingMs), signal, (ended) => attempt(request, ended))
      const limit = timeoutMs < remainingMs ? `timeoutMs, ${timeoutMs}` : `totalTimeoutMs, ${totalTimeoutMs}`
      result = response
        ? readResponse(request, response, facts)
        : new TimeoutError(`${method} ${url} was not answered in time (${limit} ms).`, facts)
    } catch (cause) {
      result = signal?.aborted
        ? new AbortError(`${method} ${url} was aborted.`, facts, { cause })
        : new ConnectionError(`${method} ${url} failed: ${describe(cause)}`, facts, { cause })
    }
    const { status = null, requestId = null, rateLimit = null } = response ?? {}
    const error = result instanceof Error ? result : null
    if (isSent)
      void call(request.onAnswer, { ...sent, ms: performance.now() - sentAt, status, requestId, rateLimit, error })
    if (!(result instanceof Error)) return result
    if (result instanceof AbortError || (result instanceof ApiError && !RETRIED_STATUSES.has(result.status)))
      throw result
    const delayMs = delayBefore(attempts, result instanceof ApiError ? result.retryAfterMs : null)
    if (attempts > request.maxRetries || performance.now() + delayMs >= endsAt) throw result
    await pause(delayMs, signal)
  }
}

/**
 * Calls a hook. An error of a caller's log must not fail a start that is recorded, nor end the process, as the rejected
 * promise of an async function would.
 */
async function call<Event>(hook: ((event: Event) => unknown) | undefined, event: Event): Promise<void> {
  try {
    await hook?.(event)
  } catch {
    // Documented at `Hooks`.
  }
}

type AttemptResponse = Awaited<ReturnType<typeof attempt>>

async function attempt({ fetch, url, method, headers, body }: ApiRequest, signal: AbortSignal) {
  const response = await fetch(url, { method, headers, ...(body && { body }), redirect: 'manual', signal })
  const { status } = response
  const text = await response.text()
  return {
    status,
    text,
    requestId: response.headers.get('x-request-id'),
    rateLimit: readRateLimit(response.headers.get('ratelimit-policy'), response.headers.get('ratelimit')),
    retryAfter: response.headers.get('retry-after'),
  }
}

/**
 * Resolves with the work's value, or with undefined after `ms`, which also aborts the work. Rejects with the caller's
 * reason if `signal` aborts. Ends on time also if an own `fetch` ignores its signal.
 */
async function within<Value>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (ended: AbortSignal) => Promise<Value>,
): Promise<Value | undefined> {
  if (signal?.aborted) throw signal.reason
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  let onAbort!: () => void
  const interruption = new Promise<undefined>((resolve, reject) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, Math.min(ms, MAX_TIMER_MS)))
    onAbort = () => reject(signal?.reason)
    signal?.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([work(controller.signal), interruption])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    controller.abort()
  }
}

/** Resolves after `ms`, or when `signal` aborts: the next request rejects at once then. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await within(ms, signal, () => new Promise<never>(() => {})).catch(() => {})
}

/** Anything but the documented success and error of the operation is `unexpected_answer`. */
function readResponse(
  { method, url, isExpected }: ApiRequest,
  { status, text, requestId, rateLimit, retryAfter }: AttemptResponse,
  facts: CallFacts,
): Received | ApiError {
  const value = parseObject(text)
  if (status === (method === 'POST' ? 202 : 200) && value && isExpected(value)) return { value, requestId, rateLimit }
  const common = { status, rateLimit, retryAfterMs: readRetryAfter(retryAfter) }
  const error = value?.['error']
  if (status < 400 || !isErrorObject(error)) {
    const message = `${method} ${url} was answered by something else than this API: is baseUrl right?`
    return new ApiError({ ...common, code: 'unexpected_answer', message, requestId }, facts)
  }
  const { code, message, details, request_id: id } = error
  return new ApiError({ ...common, code, message, details: details ?? [], requestId: id ?? requestId }, facts)
}

interface ErrorObject {
  readonly code: ErrorCode
  readonly message: string
  readonly request_id?: string | null
  readonly details?: readonly FieldError[] | null
}

function isErrorObject(value: unknown): value is ErrorObject {
  const { code, message, request_id: id, details } = toObject(value)
  const all: unknown = details ?? []
  const areDetails = Array.isArray(all) && all.every((each) => isText(each, 'field') && isText(each, 'message'))
  return [code, message, id ?? ''].every((each) => typeof each === 'string') && areDetails
}

/** Whether a value is an object with a text of this name. */
export function isText(value: unknown, name: string): boolean {
  return typeof toObject(value)[name] === 'string'
}

function toObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return toObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Reads `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. */
function readRetryAfter(header: string | null): number | null {
  if (header === null || header.trim() === '') return null
  const ms = /^\s*\d+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}

/** Half of the backoff is random, so that clients which failed together do not come back together. */
function delayBefore(retry: number, retryAfterMs: number | null): number {
  const backoffMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (retry - 1))
  return (retryAfterMs ?? backoffMs / 2) + (Math.random() * backoffMs) / 2
}

/** `fetch failed` alone does not say why; its cause does. */
function describe(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } }
  const reason = cause?.code ?? cause?.message
  return `${message ?? String(error)}${reason ? ` (${reason})` : ''}`
}
