import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { newId } from '@workflow-service/database'
import {
  generateText,
  type LanguageModel,
  type LanguageModelMiddleware,
  type ModelMessage,
  streamText,
  type ToolSet,
  wrapLanguageModel,
} from 'ai'
import { sleep } from '../sleep.ts'
import type { ModelConfig } from './agent-settings.ts'
import { RunError } from '../run-errors.ts'
import { type ModelError, toModelError } from './model-error.ts'

/** How often a model is asked for one answer, before the run fails. */
export const MAX_ATTEMPTS = 6
/** The wait before the second attempt; it doubles each time, up to the limit. */
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000

export interface ModelQuestion {
  readonly instructions: string
  readonly messages: ModelMessage[]
  readonly tools: ToolSet
}

/** One answer of the model, as the AI SDK gives it. */
export interface ModelAnswer {
  readonly content: readonly AnswerPart[]
  readonly finishReason: string
  readonly inputTokens: number | null
  readonly outputTokens: number | null
}

type AnswerPart = Awaited<ReturnType<typeof generateText>>['content'][number]

export interface AskModelOptions {
  /** Ends waits between attempts. */
  readonly signal: AbortSignal
  /** Ends an attempt under way. */
  readonly abort: AbortSignal
  /** Called before each wait. */
  readonly onRetry: (text: string) => Promise<void>
}

/** Time and chance, so that tests need neither. */
export interface ModelClock {
  readonly now: () => number
  readonly random: () => number
  /** Resolves after the time; rejects when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
}

export const systemClock: ModelClock = {
  now: Date.now,
  random: Math.random,
  wait: sleep,
}

export type AskModel = (question: ModelQuestion, options: AskModelOptions) => Promise<ModelAnswer>

/**
 * Asks the model for one answer, without carrying out any tool call. Faults that pass (429, 5xx, no answer in time, a
 * broken connection or answer) are tried again with growing waits, or with the wait that the API asks for, MAX_ATTEMPTS
 * times and no longer than AGENT_RETRY_SECONDS altogether.
 * @throws RunError with the fault's code when asking again does not help; RunInterruptedError when told to end.
 */
export function createAskModel(config: ModelConfig, clock: ModelClock = systemClock): AskModel {
  const model = createModel(config)
  return async (question, { signal, abort, onRetry }) => {
    let waitedMs = 0
    for (let attempt = 1; ; attempt += 1) {
      const answer = await attemptAnswer(config, model, question, abort, clock)
      if (!('fault' in answer)) return answer
      const { fault } = answer
      signal.throwIfAborted()
      const waitMs = fault.retryAfterMs ?? backoff(attempt, clock)
      if (!fault.isTransient) throw new RunError(fault.code, fault.message)
      if (attempt === MAX_ATTEMPTS || waitedMs + waitMs > config.retryMs) {
        const rest = attempt === MAX_ATTEMPTS ? '' : `, and asks to wait ${inSeconds(waitMs)} more`
        throw new RunError(fault.code, `${fault.message} (asked ${attempt} times over ${inSeconds(waitedMs)}${rest})`)
      }
      await onRetry(
        `${fault.message}. Asking again in ${inSeconds(waitMs)}, attempt ${attempt + 1} of ${MAX_ATTEMPTS}.`,
      )
      await clock.wait(waitMs, signal)
      waitedMs += waitMs
    }
  }
}

function createModel(config: ModelConfig): LanguageModel {
  return wrapLanguageModel({ model: createProviderModel(config), middleware: distinctCallIds })
}

/**
 * Some servers give two calls of one answer the same id, or none. The SDK would make of the second a copy of the first,
 * so the ids are told apart before it sees them.
 */
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
  const key = apiKey === null ? {} : { apiKey }
  if (provider === 'anthropic') {
    // The URL is always given: otherwise the package reads it from the environment.
    return createAnthropic({ baseURL: baseUrl ?? 'https://api.anthropic.com/v1', ...key })(modelName)
  }
  if (baseUrl === null) throw new TypeError('AGENT_BASE_URL is missing')
  return createOpenAICompatible({ name: 'model', baseURL: baseUrl, includeUsage: true, ...key })(modelName)
}

async function attemptAnswer(
  config: ModelConfig,
  model: LanguageModel,
  question: ModelQuestion,
  abort: AbortSignal,
  clock: ModelClock,
): Promise<ModelAnswer | { fault: ModelError }> {
  const deadline = AbortSignal.timeout(config.timeoutMs)
  const request = {
    ...question,
    model,
    // The runner's own loop retries, journaled and interruptible.
    maxRetries: 0,
    abortSignal: AbortSignal.any([abort, deadline]),
    ...(config.maxOutputTokens === null ? {} : { maxOutputTokens: config.maxOutputTokens }),
  }
  try {
    return await (config.isStreaming ? streamed(request) : generated(request))
  } catch (error) {
    abort.throwIfAborted()
    if (deadline.aborted) {
      const message = `The model did not answer within ${inSeconds(config.timeoutMs)}`
      return { fault: { code: 'model_unavailable', message, isTransient: true, retryAfterMs: null } }
    }
    return { fault: toModelError(error, config.apiKey, clock.now) }
  }
}

type Request = Parameters<typeof generateText>[0]

async function generated(request: Request): Promise<ModelAnswer> {
  const { content, finishReason, usage } = await generateText(request)
  return toAnswer(content, finishReason, usage)
}

async function streamed(request: Request): Promise<ModelAnswer> {
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

/** Exponential with full upper half jitter, so that runs that failed together do not come back together. */
function backoff(attempt: number, clock: ModelClock): number {
  const full = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS)
  return Math.round(full / 2 + (full / 2) * clock.random())
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
}

// The SDK would print its warnings past our logs; none of them concerns a run.
globalThis.AI_SDK_LOG_WARNINGS = false
