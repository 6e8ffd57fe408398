import { truncateText } from '@workflow-service/contract'
import { APICallError } from 'ai'

/** Why the model gave no answer. `code` and `message` become the run's error unless asking again helps. */
export interface ModelError {
  readonly code: ModelFaultCode
  readonly message: string
  /** Whether asking again may help. */
  readonly isTransient: boolean
  /** How long the model asks to wait, if it says so. */
  readonly retryAfterMs: number | null
}

export type ModelFaultCode =
  | 'model_unavailable'
  | 'model_unauthorized'
  | 'model_not_found'
  | 'model_request_refused'
  | 'model_answer_invalid'

/**
 * The fault behind an error of the AI SDK, in words of our own: its error objects carry the request with the key, so
 * they go no further. What the API says of itself is kept, one line, without the key.
 */
export function toModelError(error: unknown, apiKey: string | null, now: () => number = Date.now): ModelError {
  if (!APICallError.isInstance(error)) {
    const code = networkCode(error)
    if (code) return fault('model_unavailable', `The model could not be reached: ${code}`, true)
    return fault(
      'model_answer_invalid',
      `The model's answer is not what its API promises: ${describe(error, apiKey)}`,
      true,
    )
  }
  const { statusCode: status } = error
  const says = `: ${describe(error, apiKey)}`
  if (status === undefined) {
    return fault(
      'model_unavailable',
      `The model could not be reached: ${networkCode(error) ?? describe(error, apiKey)}`,
      true,
    )
  }
  if (status === 429 || status === 408 || status === 409 || status >= 500) {
    const retryAfterMs = readRetryAfter(error.responseHeaders ?? {}, now())
    return { ...fault('model_unavailable', `The model's API answered ${status}${says}`, true), retryAfterMs }
  }
  if (status === 401 || status === 403) {
    return fault('model_unauthorized', `The model's API answered ${status}; check AGENT_API_KEY${says}`, false)
  }
  if (status === 404) {
    return fault('model_not_found', `The model's API answered 404; check AGENT_MODEL and AGENT_BASE_URL${says}`, false)
  }
  // 2xx with a body that cannot be read, or broken off, comes as an API error too.
  if (status < 300) return fault('model_answer_invalid', `The model's answer cannot be read${says}`, true)
  return fault('model_request_refused', `The model's API answered ${status}${says}`, false)
}

/** The wait in milliseconds that `retry-after-ms` or `Retry-After` (RFC 9110, 10.2.3: seconds or a date) asks for. */
export function readRetryAfter(headers: Record<string, string | undefined>, now: number): number | null {
  const [inMs = '', after = ''] = [headers['retry-after-ms'], headers['retry-after']]
  const date = after.endsWith(' GMT') ? Date.parse(after) : Number.NaN
  const wait = isDecimal(inMs) ? Number(inMs) : isDecimal(after) ? Number(after) * 1_000 : date - now
  return Number.isFinite(wait) ? Math.max(0, Math.ceil(wait)) : null
}

/** The system's or undici's code somewhere down the chain of causes (`ECONNREFUSED`, `UND_ERR_SOCKET`, …). */
function networkCode(error: unknown): string | undefined {
  for (let link = error, depth = 0; depth < 5 && typeof link === 'object' && link !== null; depth += 1) {
    const { code, cause } = link as { code?: unknown; cause?: unknown }
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code)) return code
    link = cause
  }
  return undefined
}

function isDecimal(text: string): boolean {
  return /^\s*\d+(\.\d+)?\s*$/u.test(text)
}

function fault(code: ModelFaultCode, message: string, isTransient: boolean): ModelError {
  return { code, message, isTransient, retryAfterMs: null }
}

function describe(error: unknown, apiKey: string | null): string {
  const message = error instanceof Error ? error.message : String(error)
  const shown = apiKey ? message.replaceAll(apiKey, '[hidden]') : message
  const line = shown.toWellFormed().replace(/[\s\p{Cc}]+/gu, ' ')
  return truncateText(line.trim().replace(/\.+$/u, ''), 300)
}
