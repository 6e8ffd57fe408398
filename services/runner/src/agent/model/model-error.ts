import { isJsonObject, parseJson, truncateText } from '@workflow-service/contract'
import { APICallError } from 'ai'
import { NOT_AVAILABLE } from '../../run-errors.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { ModelAnswerLimitError } from './model-limits.ts'

export type ModelErrorCode =
  | 'model_unavailable'
  | 'model_unauthorized'
  | 'model_not_found'
  | 'model_request_refused'
  | 'model_answer_invalid'
  | 'model_quota_exceeded'
  | 'model_refused'
  | 'own_key_refused'
  | 'own_key_unreadable'

/**
 * What can be done about an error of the model:
 * `limited`: the API asks to wait (429, 529): repeat the request for as long as AGENT_RATE_LIMIT_SECONDS allows.
 * `unavailable`: the API cannot answer (5xx, 424, no connection, no answer in time): the same, with growing pauses.
 * `unreadable`: the answer is not what the API documents: another request may succeed.
 * `too_long`: a shorter question may be accepted.
 * `permanent`: no further request helps.
 */
type ModelErrorKind = 'limited' | 'unavailable' | 'unreadable' | 'too_long' | 'permanent'

/**
 * Why a request to the model failed. `code` and `message` become the run's error if no further request succeeds: the
 * organization reads them. `detail` is for the log of the operator.
 */
export class ModelError extends Error {
  override name = 'ModelError'
  readonly code: ModelErrorCode
  readonly kind: ModelErrorKind
  readonly detail: string
  /** The delay that the model's API asks for, if any. */
  readonly retryAfterMs: number | null

  constructor(
    code: ModelErrorCode,
    kind: ModelErrorKind,
    message: string,
    { detail = message, retryAfterMs = null }: { detail?: string; retryAfterMs?: number | null } = {},
  ) {
    super(message)
    this.code = code
    this.kind = kind
    this.detail = detail
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * An account without money, or at its own limit of spending: waiting does not help. OpenAI answers 429 with such a
 * code, Anthropic 400 or 429; the others, and Anthropic for a `billing_error`, 402.
 */
const QUOTA_EXCEEDED =
  /insufficient_quota|billing_hard_limit_reached|billing_not_active|billing_error|spend_limit_reached|credit balance is too low|reached your specified (?:\w+ )*usage limits/iu
/** Gemini answers 400 to a key that it does not know or that has expired. */
const KEY_REFUSED = /API_KEY_INVALID|API key not valid/u
/** Bedrock, OpenAI and Groq answer 400 to the name of a model that they do not know or no longer have. */
const MODEL_UNKNOWN =
  /model identifier is invalid|on-demand throughput isn.t supported|"code"\s*:\s*"model_(?:not_found|decommissioned)"/u
/** How the AI SDK says that a stream ended without a reason why, which a server or proxy that ends may cause. */
const BROKEN_OFF = /stream ended without a finish/iu
const SERVER_ERROR = /server.?(?:error|exception)|api.?error|overload|unavailable|time.?out/iu
/**
 * Azure answers 400 when its content filter rejects the prompt, and so do others that have its code, OpenAI when it
 * flags the prompt, and Anthropic when it blocks the answer.
 */
const FILTERED =
  /"code"\s*:\s*"content_filter"|content management policy|ResponsibleAIPolicyViolation|content_policy_violation|flagged as potentially violating our usage policy|blocked by content filtering policy/u
/**
 * How APIs say that the prompt does not fit into the model's context: OpenAI and vLLM, Anthropic, Google, Bedrock (the
 * last of them Amazon Nova), llama.cpp.
 */
const CONTEXT_TOO_LONG =
  /context_length_exceeded|context[ _](?:length|window|size|limit)|prompt is too long|input (?:is|length) .*too long|input is too long|input token count .*exceeds|too many (?:input )?tokens|input tokens exceeded|exceed_context_size/iu
/**
 * OpenAI and Groq answer 429 or 413 to a request that alone has more tokens than the account may send in a minute: no
 * waiting helps.
 */
const EXCEEDS_RATE = /request too large for /iu

/**
 * Classifies an error of the AI SDK. Keeps only its message, on one line and without the API key: the error objects
 * carry the request with the key and must not reach a log. What the API says reaches the organization only where its
 * own text is the cause.
 */
export function toModelError(
  error: unknown,
  { apiKey, isOwnKey = false, name }: Pick<ModelConfig, 'apiKey' | 'isOwnKey' | 'name'>,
  now: () => number = Date.now,
): ModelError {
  const causes = listCauses(error)
  const exceeded = causes.find((cause) => cause instanceof ModelAnswerLimitError)
  if (exceeded) return new ModelError('model_answer_invalid', 'permanent', exceeded.message)
  if (causes.some(({ message }) => message === 'unexpected redirect')) {
    const detail = "The model's API answered with a redirect, which is not followed; check AGENT_BASE_URL"
    return notAvailable('model_request_refused', detail)
  }
  const brokenBy = networkCode(causes)
  const said = describe(error, apiKey)
  if (!APICallError.isInstance(error)) {
    if (brokenBy) return unreachable(brokenBy)
    if (BROKEN_OFF.test(said)) {
      return new ModelError('model_unavailable', 'unavailable', "The model's API broke off its answer")
    }
    // An error as the end of a stream, whose status was 200 at its beginning.
    const text = causes
      .map(({ message, code, type }) => `${String(message)} ${String(code)} ${String(type)}`)
      .join(' ')
      .slice(0, 10_000)
    const status = readStreamStatus(causes)
    const isOutOfQuota = status === 402 || QUOTA_EXCEEDED.test(text)
    const isKeyRefused = status === 401 || status === 403
    const ended = "The model's API ended its answer with an error"
    if (isOwnKey && (isOutOfQuota || isKeyRefused)) return ownKeyRefused({ answered: ended, name, said, isOutOfQuota })
    if (isOutOfQuota) return notAvailable('model_quota_exceeded', `The quota of the model's API is used up: ${said}`)
    if (isKeyRefused) return notAvailable('model_unauthorized', `${ended}; check AGENT_API_KEY: ${said}`)
    if (status === 400 && FILTERED.test(text)) return filtered(said)
    if (status === 400 && CONTEXT_TOO_LONG.test(text)) return tooLong(said)
    // The packages of the providers give 500 to each error that they do not know.
    const kind = status === 500 && !SERVER_ERROR.test(text) ? undefined : kindOf(status)
    if (!kind) return unreadable(`The model's answer does not follow its API: ${said}`)
    return new ModelError('model_unavailable', kind, ended, { detail: `${ended}: ${said}` })
  }
  // The package of OpenAI gives the parsed body of a failed response in place of its text.
  const body = typeof error.responseBody === 'object' ? JSON.stringify(error.responseBody) : (error.responseBody ?? '')
  const status = readStatus(error, body)
  // A connection that breaks in the middle of an answer leaves the status of its beginning.
  if (status === undefined || (status < 300 && brokenBy !== undefined)) return unreachable(brokenBy ?? said)
  // The SDK also reports a 2xx answer with an unreadable or incomplete body as an API error.
  if (status < 300) return unreadable(`The model's answer cannot be read: ${said}`)
  const text = `${error.message} ${body}`.slice(0, 10_000)
  const answered = `The model's API answered ${status}`
  // OpenRouter says by `Retry-After` that a 402 is only of requests under way.
  const retryAfterMs = readRetryAfter(error.responseHeaders ?? {}, now()) ?? readRetryDelay(text)
  const isWaitedFor = status === 402 && retryAfterMs !== null
  const isOutOfQuota = (status === 402 && !isWaitedFor) || (status >= 400 && status < 500 && QUOTA_EXCEEDED.test(text))
  const isKeyRefused = status === 401 || status === 403 || (status === 400 && KEY_REFUSED.test(text))
  const isModelUnknown = status === 404 || (status === 400 && MODEL_UNKNOWN.test(text))
  if (isOwnKey && (isOutOfQuota || isKeyRefused || isModelUnknown))
    return ownKeyRefused({ answered, name, said, isOutOfQuota })
  if (isOutOfQuota) {
    const detail = `The quota of the model's API is used up (${status}); check the account of AGENT_API_KEY: ${said}`
    return notAvailable('model_quota_exceeded', detail)
  }
  if (status === 400 && FILTERED.test(text)) return filtered(said)
  if ((status === 429 || status === 413) && EXCEEDS_RATE.test(text)) {
    const message = "The prompt is too long for the limits of the model's account"
    return new ModelError('model_request_refused', 'too_long', message, { detail: `${answered}: ${said}` })
  }
  const kind = isWaitedFor ? 'limited' : kindOf(status)
  if (kind !== undefined) {
    const detail = `${answered}: ${said}`
    return new ModelError('model_unavailable', kind, answered, { detail, retryAfterMs })
  }
  if (isKeyRefused) {
    return notAvailable('model_unauthorized', `${answered}; check AGENT_API_KEY: ${said}`)
  }
  if (isModelUnknown) {
    return notAvailable('model_not_found', `${answered}; check AGENT_MODEL and AGENT_BASE_URL: ${said}`)
  }
  const isTooLong = (status === 400 || status === 413 || status === 422) && CONTEXT_TOO_LONG.test(text)
  return isTooLong ? tooLong(said) : notAvailable('model_request_refused', `${answered}: ${said}`)
}

/**
 * The status of an answer. OpenAI's Responses answers 200 also to a request that failed later, and has the reason in
 * the body, as OpenRouter does with a status as the code. The package of OpenAI makes 400 of the first, or cannot read
 * it.
 */
function readStatus({ statusCode, responseBody }: APICallError, body: string): number | undefined {
  if (typeof responseBody === 'string' && (statusCode === undefined || statusCode >= 300)) return statusCode
  const answer = parseJson(body)
  const error = isJsonObject(answer) ? answer['error'] : undefined
  const code = isJsonObject(error) ? error['code'] : undefined
  if (code === 'rate_limit_exceeded') return 429
  if (code === 'server_error' || code === 'vector_store_timeout') return 500
  if (code === 'invalid_prompt') return 400
  return typeof code === 'number' && code >= 400 && code < 600 ? code : statusCode
}

/**
 * The status of an error as the end of a stream. The packages know none for some types of Anthropic, and for codes of
 * compatible APIs that are texts.
 */
function readStreamStatus(causes: ReturnType<typeof listCauses>): number {
  const known = causes.find(({ statusCode }) => statusCode !== undefined)
  if (known) return Number(known.statusCode)
  const names = causes.map(({ type, code }) => `${String(type)} ${String(code)}`).join(' ')
  if (names.includes('rate_limit')) return 429
  if (SERVER_ERROR.test(names)) return 500
  return /invalid_request|context_length/u.test(names) ? 400 : Number.NaN
}

function filtered(said: string): ModelError {
  const message = `The content filter of the model's API rejected the prompt or the answer: ${said}`
  return new ModelError('model_refused', 'permanent', message)
}

function tooLong(said: string): ModelError {
  return new ModelError('model_request_refused', 'too_long', `The prompt is too long for the model: ${said}`)
}

function ownKeyRefused(refusal: {
  readonly answered: string
  readonly name: string
  readonly said: string
  readonly isOutOfQuota: boolean
}): ModelError {
  const { answered, name, said, isOutOfQuota } = refusal
  const why = isOutOfQuota ? 'its account has no quota left' : 'an admin enters another one, or removes it'
  const message = `${answered} to the organization's own key for ${name}: ${why} (page Agents)`
  return new ModelError('own_key_refused', 'permanent', message, { detail: `${answered} to an own key: ${said}` })
}

/** This runner cannot decrypt the organization's own key. The service's key does not take its place silently. */
export function unreadableKey({ name }: Pick<ModelConfig, 'name'>): ModelError {
  const message = `The service cannot read the organization's own key for ${name}: an admin enters it again, or removes it (page Agents)`
  const detail = 'SECRETS_KEY of this runner does not have the key of the own key of an organization'
  return new ModelError('own_key_unreadable', 'permanent', message, { detail })
}

/** An error that only the operator of the service can repair. */
function notAvailable(code: ModelErrorCode, detail: string): ModelError {
  return new ModelError(code, 'permanent', NOT_AVAILABLE, { detail })
}

function unreadable(detail: string): ModelError {
  return new ModelError('model_answer_invalid', 'unreadable', "The model's answer cannot be read", { detail })
}

function unreachable(why: string): ModelError {
  const message = "The model's API cannot be reached"
  return new ModelError('model_unavailable', 'unavailable', message, { detail: `${message}: ${why}` })
}

function kindOf(status: number): 'limited' | 'unavailable' | undefined {
  if (status === 429 || status === 529) return 'limited'
  // Bedrock answers 424 where the model fails (ModelErrorException, ModelStreamErrorException).
  return status === 408 || status === 409 || status === 424 || status >= 500 ? 'unavailable' : undefined
}

/** It holds up all runs of a model, also when the account has more quota before its end. */
const MAX_RETRY_AFTER_MS = 86_400_000
/** A delay of more seconds is a time of the clock, which some servers send in its place. */
const CLOCK_SECONDS = 1_000_000_000

/** The delay in milliseconds of `retry-after-ms` or `Retry-After` (RFC 9110, 10.2.3: seconds or a date). */
export function readRetryAfter(headers: Record<string, string | undefined>, now: number): number | null {
  const [inMs = '', after = ''] = [headers['retry-after-ms'], headers['retry-after']]
  const date = after.endsWith(' GMT') ? Date.parse(after) : Number.NaN
  const time = Number(after) > CLOCK_SECONDS ? Number(after) * 1_000 : date
  const delayMs = isDecimal(inMs) ? Number(inMs) : isDecimal(after) && !(time > 0) ? Number(after) * 1_000 : time - now
  return Number.isFinite(delayMs) ? Math.max(0, Math.ceil(Math.min(delayMs, MAX_RETRY_AFTER_MS))) : null
}

/**
 * The delay in milliseconds of Google's `RetryInfo` in the body of an error (google.rpc.RetryInfo): seconds such as
 * "34.07s".
 */
function readRetryDelay(body: string): number | null {
  const [, seconds] = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/u.exec(body) ?? []
  return seconds === undefined ? null : Math.ceil(Math.min(Number(seconds) * 1_000, MAX_RETRY_AFTER_MS))
}

/** The error code of the system or of undici (`ECONNREFUSED`, `UND_ERR_SOCKET`, …). */
function networkCode(causes: readonly { readonly code?: unknown }[]): string | undefined {
  return causes
    .map(({ code }) => code)
    .find((code): code is string => typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code))
}

/** The error, its cause, the cause's cause, and so on. */
export function listCauses(
  error: unknown,
): { message?: unknown; code?: unknown; type?: unknown; statusCode?: unknown; cause?: unknown }[] {
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

function describe(error: unknown, apiKey: string | null): string {
  const message = error instanceof Error ? error.message : String(error)
  const redacted = apiKey ? message.replaceAll(apiKey, '[hidden]') : message
  const line = redacted.toWellFormed().replace(/[\s\p{Cc}]+/gu, ' ')
  return truncateText(line.trim().replace(/(?<!\.)\.+$/u, ''), 300)
}
