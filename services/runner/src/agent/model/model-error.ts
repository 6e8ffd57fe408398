import { truncateText } from '@workflow-service/contract'
import { APICallError } from 'ai'
import { ModelAnswerLimitError } from './model-limits.ts'

/** Why a request to the model failed. `code` and `message` become the run's error if no retry succeeds. */
export interface ModelError {
  readonly code: ModelErrorCode
  readonly message: string
  /** Whether a retry may help. */
  readonly isTransient: boolean
  /** The delay that the model's API asks for, if any. */
  readonly retryAfterMs: number | null
}

export type ModelErrorCode =
  | 'model_unavailable'
  | 'model_unauthorized'
  | 'model_not_found'
  | 'model_request_refused'
  | 'model_answer_invalid'

/**
 * Classifies an error of the AI SDK. Keeps only its message, on one line and without the API key: the error objects carry
 * the request with the key and must not reach a log.
 */
export function toModelError(error: unknown, apiKey: string | null, now: () => number = Date.now): ModelError {
  const causes = listCauses(error)
  const exceeded = causes.find((cause) => cause instanceof ModelAnswerLimitError)
  if (exceeded) return modelError('model_answer_invalid', exceeded.message, false)
  if (causes.some(({ message }) => message === 'unexpected redirect')) {
    return modelError(
      'model_request_refused',
      "The model's API answered with a redirect, which is not followed; check AGENT_BASE_URL",
      false,
    )
  }
  if (!APICallError.isInstance(error)) {
    const code = networkCode(error)
    if (code) return modelError('model_unavailable', `The model could not be reached: ${code}`, true)
    return modelError(
      'model_answer_invalid',
      `The model's answer does not follow its API: ${describe(error, apiKey)}`,
      true,
    )
  }
  const { statusCode: status } = error
  const detail = `: ${describe(error, apiKey)}`
  if (status === undefined) {
    return modelError(
      'model_unavailable',
      `The model could not be reached: ${networkCode(error) ?? describe(error, apiKey)}`,
      true,
    )
  }
  if (status === 429 || status === 408 || status === 409 || status >= 500) {
    const retryAfterMs = readRetryAfter(error.responseHeaders ?? {}, now())
    return { ...modelError('model_unavailable', `The model's API answered ${status}${detail}`, true), retryAfterMs }
  }
  if (status === 401 || status === 403) {
    return modelError('model_unauthorized', `The model's API answered ${status}; check AGENT_API_KEY${detail}`, false)
  }
  if (status === 404) {
    return modelError(
      'model_not_found',
      `The model's API answered 404; check AGENT_MODEL and AGENT_BASE_URL${detail}`,
      false,
    )
  }
  // The SDK also reports a 2xx answer with an unreadable or incomplete body as an API error.
  if (status < 300) return modelError('model_answer_invalid', `The model's answer cannot be read${detail}`, true)
  return modelError('model_request_refused', `The model's API answered ${status}${detail}`, false)
}

/** The delay in milliseconds of `retry-after-ms` or `Retry-After` (RFC 9110, 10.2.3: seconds or a date). */
export function readRetryAfter(headers: Record<string, string | undefined>, now: number): number | null {
  const [inMs = '', after = ''] = [headers['retry-after-ms'], headers['retry-after']]
  const date = after.endsWith(' GMT') ? Date.parse(after) : Number.NaN
  const delayMs = isDecimal(inMs) ? Number(inMs) : isDecimal(after) ? Number(after) * 1_000 : date - now
  return Number.isFinite(delayMs) ? Math.max(0, Math.ceil(delayMs)) : null
}

/** The error code of the system or of undici in the chain of causes (`ECONNREFUSED`, `UND_ERR_SOCKET`, …). */
function networkCode(error: unknown): string | undefined {
  return listCauses(error)
    .map(({ code }) => code)
    .find((code): code is string => typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code))
}

/** The error, its cause, the cause's cause, and so on. */
function listCauses(error: unknown): { message?: unknown; code?: unknown; cause?: unknown }[] {
  const causes: { cause?: unknown }[] = []
  for (let link = error; causes.length < 5 && typeof link === 'object' && link !== null;) {
    causes.push(link)
    link = (link as { cause?: unknown }).cause
  }
  return causes
}

function isDecimal(text: string): boolean {
  return /^\s*\d+(\.\d+)?\s*$/u.test(text)
}

function modelError(code: ModelErrorCode, message: string, isTransient: boolean): ModelError {
  return { code, message, isTransient, retryAfterMs: null }
}

function describe(error: unknown, apiKey: string | null): string {
  const message = error instanceof Error ? error.message : String(error)
  const redacted = apiKey ? message.replaceAll(apiKey, '[hidden]') : message
  const line = redacted.toWellFormed().replace(/[\s\p{Cc}]+/gu, ' ')
  return truncateText(line.trim().replace(/\.+$/u, ''), 300)
}
