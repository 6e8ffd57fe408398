import { AbortError, ApiError, type CallFacts, ConnectionError, TimeoutError } from './errors.ts'
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
  readonly headers: Record<string, string>
  readonly body?: string
  readonly idempotencyKey?: string
  readonly maxRetries: number
  readonly timeoutMs: number
  readonly totalTimeoutMs: number
  readonly signal?: AbortSignal
}

/** The service's own transient answers, and those of a proxy that does not reach it. 409 is final. */
const RETRIED_STATUSES = new Set([429, 500, 502, 503, 504])

const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 8000
/** `setTimeout` fires at once for a longer time. */
const MAX_TIMER_MS = 2 ** 31 - 1

const TIME_IS_UP = Symbol('time is up')

/**
 * Sends the request, and again after a connection error, a time-out or a transient answer, with growing, random delays
 * of at least `Retry-After`. Gives up after `maxRetries`, or if the next delay would not fit into `totalTimeoutMs`.
 * Rejects with the last attempt's error.
 */
export async function sendRequest(request: ApiRequest): Promise<{ value: unknown; requestId: string | null }> {
  const { idempotencyKey, timeoutMs, totalTimeoutMs, signal } = request
  const endsAt = performance.now() + totalTimeoutMs
  for (let attempts = 1; ; attempts += 1) {
    const facts: CallFacts = { idempotencyKey, attempts: signal?.aborted ? attempts - 1 : attempts }
    const remainingMs = endsAt - performance.now()
    let error: ApiError | ConnectionError
    try {
      const answer = await within(Math.min(timeoutMs, remainingMs), signal, (ended) => attempt(request, ended))
      if (answer === TIME_IS_UP) {
        const limit = timeoutMs < remainingMs ? `timeoutMs, ${timeoutMs}` : `totalTimeoutMs, ${totalTimeoutMs}`
        error = new TimeoutError(`${request.method} ${request.url} was not answered in time (${limit} ms).`, facts)
      } else {
        const read = readAnswer(request, answer, facts)
        if (!(read instanceof ApiError)) return read
        error = read
      }
    } catch (cause) {
      if (signal?.aborted) throw new AbortError(`${request.method} ${request.url} was aborted.`, facts, { cause })
      error = new ConnectionError(`${request.method} ${request.url} failed: ${describe(cause)}`, facts, { cause })
    }
    if (error instanceof ApiError && !RETRIED_STATUSES.has(error.status)) throw error
    const delayMs = delayBefore(attempts, error instanceof ApiError ? error.retryAfterMs : null)
    if (attempts > request.maxRetries || performance.now() + delayMs >= endsAt) throw error
    await within(delayMs, signal, () => new Promise<never>(() => {})).catch((cause: unknown) => {
      throw new AbortError(`${request.method} ${request.url} was aborted.`, facts, { cause })
    })
  }
}

interface Answer {
  readonly status: number
  readonly text: string
  readonly requestId: string | null
  readonly retryAfter: string | null
}

async function attempt({ fetch, url, method, headers, body }: ApiRequest, signal: AbortSignal): Promise<Answer> {
  const response = await fetch(url, { method, headers, ...(body && { body }), redirect: 'manual', signal })
  const { status } = response
  const text = await response.text()
  return {
    status,
    text,
    requestId: response.headers.get('x-request-id'),
    retryAfter: response.headers.get('retry-after'),
  }
}

/**
 * Resolves with the work's value, or with TIME_IS_UP after `ms`, which also aborts the work. Rejects with the caller's
 * reason if `signal` aborts. Ends on time also if an own `fetch` ignores its signal.
 */
async function within<Value>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (ended: AbortSignal) => Promise<Value>,
): Promise<Value | typeof TIME_IS_UP> {
  if (signal?.aborted) throw signal.reason
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  let onAbort!: () => void
  const interruption = new Promise<typeof TIME_IS_UP>((resolve, reject) => {
    timer = setTimeout(() => resolve(TIME_IS_UP), Math.min(ms, MAX_TIMER_MS))
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

function readAnswer({ method, url }: ApiRequest, answer: Answer, facts: CallFacts) {
  const { status, requestId } = answer
  const value = parseObject(answer.text)
  if (status >= 200 && status < 300 && value) return { value, requestId }
  const retryAfterMs = readRetryAfter(answer.retryAfter)
  const error = value?.['error'] as Partial<ErrorObject> | undefined
  if (typeof error?.code !== 'string') {
    const message = `${method} ${url} was answered by something else than this API: is baseUrl right?`
    return new ApiError({ status, code: 'unexpected_answer', message, requestId, retryAfterMs }, facts)
  }
  const { code, message = '', details, request_id: id } = error
  return new ApiError(
    { status, code, message, details: details ?? [], requestId: id ?? requestId, retryAfterMs },
    facts,
  )
}

interface ErrorObject {
  readonly code: ErrorCode
  readonly message: string
  readonly request_id: string
  readonly details?: readonly FieldError[] | null
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
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
