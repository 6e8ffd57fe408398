import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { newId } from '@workflow-service/database'
import { backoff } from '@workflow-service/service-kit'
import {
  generateText,
  type LanguageModel,
  type LanguageModelMiddleware,
  type ModelMessage,
  streamText,
  type ToolSet,
  wrapLanguageModel,
} from 'ai'
import { sleep } from '../../sleep.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { RunError } from '../../run-errors.ts'
import { type ModelError, toModelError } from './model-error.ts'
import { fetchModelAnswer, limitToolCalls } from './model-limits.ts'

/** Requests for one answer before the run fails. */
const MAX_REQUESTS = 6
const FIRST_DELAY_MS = 1_000
const MAX_DELAY_MS = 60_000

export interface ModelQuestion {
  readonly instructions: string
  readonly messages: ModelMessage[]
  readonly tools: ToolSet
}

/** One answer of the model, as the AI SDK returns it. */
export interface ModelAnswer {
  readonly content: readonly AnswerPart[]
  readonly finishReason: string
  readonly inputTokens: number | null
  readonly outputTokens: number | null
}

type AnswerPart = Awaited<ReturnType<typeof generateText>>['content'][number]

export interface AskModelOptions {
  /** Ends the delay before a retry. */
  readonly signal: AbortSignal
  /** Ends a request under way. */
  readonly abort: AbortSignal
  /** Called before each delay. */
  readonly onRetry: (text: string) => Promise<void>
}

/** Time and randomness; tests replace them. */
export interface ModelClock {
  readonly now: () => number
  readonly random: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>
}

const systemClock: ModelClock = { now: Date.now, random: Math.random, sleep }

export type AskModel = (question: ModelQuestion, options: AskModelOptions) => Promise<ModelAnswer>

/**
 * Creates the function that asks the model for one answer. It does not execute tool calls. It repeats a request that
 * failed with a transient error (429, 5xx, timeout, broken connection or answer), after a growing delay or the one that
 * the API asks for, up to MAX_REQUESTS requests and AGENT_RETRY_SECONDS of delays in total.
 * @throws RunError with the error's code when no retry helps, or the reason of the signal that aborted.
 */
export function createAskModel(config: ModelConfig, clock: ModelClock = systemClock): AskModel {
  const model = createModel(config)
  return async (question, { signal, abort, onRetry }) => {
    const nextDelayMs = backoff({
      firstMs: FIRST_DELAY_MS,
      maxMs: MAX_DELAY_MS,
      hasJitter: true,
      random: clock.random,
    })
    let waitedMs = 0
    for (let request = 1; ; request += 1) {
      const answer = await requestAnswer(config, model, question, abort, clock)
      if (!('error' in answer)) return answer
      const { error } = answer
      signal.throwIfAborted()
      if (!error.isTransient) throw new RunError(error.code, error.message)
      const backoffMs = Math.round(nextDelayMs())
      const delayMs = error.retryAfterMs ?? backoffMs
      if (request === MAX_REQUESTS || waitedMs + delayMs > config.retryMs) {
        const why =
          request === MAX_REQUESTS
            ? `, ${formatSeconds(waitedMs)} of delays in total`
            : `: the next one would have to wait ${formatSeconds(delayMs)}`
        throw new RunError(error.code, `${error.message} (gave up after request ${request} of ${MAX_REQUESTS}${why})`)
      }
      await onRetry(
        `${error.message}. The next request follows in ${formatSeconds(delayMs)} (${request + 1} of ${MAX_REQUESTS}).`,
      )
      await clock.sleep(delayMs, signal)
      waitedMs += delayMs
    }
  }
}

function createModel(config: ModelConfig): LanguageModel {
  return wrapLanguageModel({ model: createProviderModel(config), middleware: [distinctCallIds, limitToolCalls] })
}

/** Some servers give two calls of one answer the same id, or none, and the SDK would replace the second by the first. */
const distinctCallIds: LanguageModelMiddleware = {
  specificationVersion: 'v4',
  async wrapGenerate({ doGenerate }) {
    const answer = await doGenerate()
    const seen = new Set<string>()
    const content = answer.content.map((part) => {
      if (part.type !== 'tool-call') return part
      const toolCallId = seen.has(part.toolCallId) || part.toolCallId === '' ? newId() : part.toolCallId
      seen.add(toolCallId)
      return { ...part, toolCallId }
    })
    return { ...answer, content }
  },
}

function createProviderModel({ provider, modelName, baseUrl, apiKey }: ModelConfig) {
  const options = { fetch: fetchModelAnswer, ...(apiKey === null ? {} : { apiKey }) }
  if (provider === 'anthropic') {
    // An explicit URL, because the package would otherwise read one from the environment.
    return createAnthropic({ baseURL: baseUrl ?? 'https://api.anthropic.com/v1', ...options })(modelName)
  }
  if (baseUrl === null) throw new TypeError('AGENT_BASE_URL is missing')
  return createOpenAICompatible({ name: 'model', baseURL: baseUrl, includeUsage: true, ...options })(modelName)
}

async function requestAnswer(
  config: ModelConfig,
  model: LanguageModel,
  question: ModelQuestion,
  abort: AbortSignal,
  clock: ModelClock,
): Promise<ModelAnswer | { error: ModelError }> {
  const deadline = AbortSignal.timeout(config.timeoutMs)
  const request = {
    ...question,
    model,
    // createAskModel retries instead: it writes retries to the journal and can be interrupted.
    maxRetries: 0,
    abortSignal: AbortSignal.any([abort, deadline]),
    ...(config.maxOutputTokens === null ? {} : { maxOutputTokens: config.maxOutputTokens }),
  }
  try {
    return await (config.isStreaming ? requestStreamed(request) : requestWhole(request))
  } catch (error) {
    abort.throwIfAborted()
    if (deadline.aborted) {
      const message = `The model did not answer within ${formatSeconds(config.timeoutMs)}`
      return { error: { code: 'model_unavailable', message, isTransient: true, retryAfterMs: null } }
    }
    return { error: toModelError(error, config.apiKey, clock.now) }
  }
}

type Request = Parameters<typeof generateText>[0]

async function requestWhole(request: Request): Promise<ModelAnswer> {
  const { content, finishReason, usage } = await generateText(request)
  return toAnswer(content, finishReason, usage)
}

async function requestStreamed(request: Request): Promise<ModelAnswer> {
  const errors: unknown[] = []
  const result = streamText({ ...request, onError: ({ error }) => void errors.push(error) })
  await result.consumeStream({ onError: (error) => void errors.push(error) })
  request.abortSignal?.throwIfAborted()
  if (errors.length > 0) throw errors[0]
  return toAnswer(await result.content, await result.finishReason, await result.usage)
}

function toAnswer(
  content: readonly AnswerPart[],
  finishReason: string,
  usage: { inputTokens?: number | undefined; outputTokens?: number | undefined },
): ModelAnswer {
  return {
    content,
    finishReason,
    inputTokens: usage.inputTokens ?? null,
    outputTokens: usage.outputTokens ?? null,
  }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
}

// Otherwise the AI SDK prints warnings to the console, in another format than our logs.
globalThis.AI_SDK_LOG_WARNINGS = false
