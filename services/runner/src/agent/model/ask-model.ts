import { newId } from '@workflow-service/database'
import { NO_TRACING, type Tracing } from '@workflow-service/service-kit'
import {
  generateText,
  type LanguageModelMiddleware,
  type LanguageModelUsage,
  type ModelMessage,
  streamText,
  wrapLanguageModel,
} from 'ai'
import type { ModelConfig } from '../agent-settings.ts'
import { ModelError, toModelError } from './model-error.ts'
import { countMembers, MODEL_ANSWER_MAX_MEMBERS, ModelAnswerLimitError } from './model-limits.ts'
import type { AskModel, AttachedFile, ModelAnswer, ModelAnswerContent, ModelUsage } from './model-question.ts'
import { adaptRequests } from './provider-requests.ts'
import { createProviderModel, MODEL_PROVIDERS, modelBaseUrl } from './providers.ts'

/** Creates the function that asks the configured model. Its requests are sent by `send`, and are spans of `tracing`. */
export function createAskModel(
  config: ModelConfig,
  now: () => number = Date.now,
  send = fetch,
  tracing: Tracing = NO_TRACING,
): AskModel {
  let providerModel: ReturnType<typeof createProviderModel> | undefined
  const loadModel = (): ReturnType<typeof createProviderModel> => {
    const loading = createProviderModel(config, send)
    // As with the agent's own code, the next request loads it again.
    loading.catch(() => (providerModel = undefined))
    return loading
  }
  const ask: AskModel = async ({ files = [], messages, ...question }, abort) => {
    const deadline = AbortSignal.timeout(config.timeoutMs)
    const inputs: string[] = []
    const request = {
      ...question,
      messages: attachToFirst(messages, files),
      model: wrapLanguageModel({
        model: await (providerModel ??= loadModel()),
        middleware: [adaptRequests(config), readToolCalls(inputs)],
      }),
      // The agent retries instead: it writes retries to the journal and can be interrupted.
      maxRetries: 0,
      abortSignal: AbortSignal.any([abort, deadline]),
      ...(config.maxOutputTokens === null ? {} : { maxOutputTokens: config.maxOutputTokens }),
    }
    try {
      return toAnswer(await (config.isStreaming ? requestStreamed(request) : generateText(request)), inputs)
    } catch (error) {
      abort.throwIfAborted()
      if (deadline.aborted) {
        const text = `The model did not answer within ${config.timeoutMs / 1_000} s`
        throw new ModelError('model_unavailable', 'unavailable', text)
      }
      throw toModelError(error, config, now)
    }
  }
  return traceRequests(ask, config, tracing)
}

/**
 * Makes each request to the model a span, after the semantic conventions for generative AI (`gen_ai.client.inference`):
 * which model was asked, how the request ended and its tokens, but nothing of the question, of the answer or of an
 * error's message.
 */
function traceRequests(ask: AskModel, config: ModelConfig, tracing: Tracing): AskModel {
  const { hostname, port, protocol } = new URL(modelBaseUrl(config))
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': MODEL_PROVIDERS[config.provider].tracingName,
    'gen_ai.request.model': config.modelName,
    'gen_ai.request.max_tokens': config.maxOutputTokens,
    'gen_ai.request.stream': config.isStreaming ? true : null,
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'http:' ? 80 : 443)),
  }
  return (question, abort) =>
    tracing.trace({ name: `chat ${config.modelName}`, kind: 'client', attributes }, async (span) => {
      try {
        const answer = await ask(question, abort)
        const { usage } = answer
        span.set({
          'gen_ai.response.id': answer.responseId,
          'gen_ai.response.finish_reasons': [answer.finishReason],
          'gen_ai.usage.input_tokens': usage.input_tokens,
          'gen_ai.usage.cache_read.input_tokens': usage.cache_read_tokens,
          'gen_ai.usage.cache_write.input_tokens': usage.cache_write_tokens,
          'gen_ai.usage.output_tokens': usage.output_tokens,
          'gen_ai.usage.reasoning.output_tokens': usage.reasoning_tokens,
        })
        return answer
      } catch (error) {
        span.fail(error instanceof ModelError ? error.code : abort.aborted ? 'aborted' : '_OTHER')
        throw error
      }
    })
}

/** Before the text, as the providers advise. Each has its path, which the text refers to. */
function attachToFirst(messages: ModelMessage[], files: readonly AttachedFile[]): ModelMessage[] {
  const [first, ...others] = messages
  if (files.length === 0 || first?.role !== 'user' || typeof first.content !== 'string') return messages
  const parts = files.flatMap(({ path, mediaType, base64 }, index) => {
    const filename = `file-${index + 1}.${mediaType.split('/')[1]}`
    const label = { type: 'text' as const, text: `The file ${JSON.stringify(path)}:` }
    return [label, { type: 'file' as const, mediaType, data: base64, filename }]
  })
  return [{ role: 'user', content: [...parts, { type: 'text', text: first.content }] }, ...others]
}

/** Tool calls in one answer of the model. */
const MAX_TOOL_CALLS_PER_ANSWER = 100

/**
 * Reads the tool calls of an answer before the AI SDK does. Keeps their arguments as the model wrote them: the SDK
 * parses them, and rounds numbers. Refuses an answer with more than MAX_TOOL_CALLS_PER_ANSWER: for a call of an unknown
 * tool, the SDK writes a message with the names of all tools.
 */
function readToolCalls(inputs: string[]): LanguageModelMiddleware {
  let membersLeft = MODEL_ANSWER_MAX_MEMBERS
  const read = ({ type, input }: { readonly type: string; readonly input?: unknown }): void => {
    if (type !== 'tool-call') return
    membersLeft -= countMembers(Buffer.from(String(input)), membersLeft)
    if (inputs.push(String(input)) <= MAX_TOOL_CALLS_PER_ANSWER) return
    throw new ModelAnswerLimitError(
      `The model's answer has more than ${MAX_TOOL_CALLS_PER_ANSWER} tool calls, so none of them was executed`,
    )
  }
  return {
    specificationVersion: 'v4',
    async wrapGenerate({ doGenerate }) {
      const answer = await doGenerate()
      const ids = new Set<string>()
      const content = answer.content.map((part) => {
        read(part)
        if (part.type !== 'tool-call') return part
        // Some servers give two calls the same id, or none, and the SDK would replace the second by the first.
        const toolCallId = ids.has(part.toolCallId) || part.toolCallId === '' ? newId() : part.toolCallId
        ids.add(toolCallId)
        return { ...part, toolCallId }
      })
      return { ...answer, content }
    },
    async wrapStream({ doStream }) {
      const { stream, ...rest } = await doStream()
      const reader = new TransformStream({
        transform(part, controller) {
          read(part as Parameters<typeof read>[0])
          controller.enqueue(part)
        },
      })
      return { ...rest, stream: stream.pipeThrough(reader) }
    },
  }
}

type Request = Parameters<typeof generateText>[0]
type SdkAnswer = Pick<
  Awaited<ReturnType<typeof generateText>>,
  'content' | 'finishReason' | 'rawFinishReason' | 'usage' | 'response'
>

async function requestStreamed(request: Request): Promise<SdkAnswer> {
  const errors: unknown[] = []
  const result = streamText({ ...request, onError: ({ error }) => void errors.push(error) })
  await result.consumeStream({ onError: (error) => void errors.push(error) })
  request.abortSignal?.throwIfAborted()
  if (errors.length > 0) throw errors[0]
  const [finishReason, rawFinishReason] = [await result.finishReason, await result.rawFinishReason]
  // A server or proxy that ends closes its connections in the middle of answers, which is no error of the stream.
  if (finishReason === 'interrupted' || (finishReason === 'other' && rawFinishReason === undefined)) {
    throw new Error('The stream ended without a finish reason')
  }
  return {
    content: await result.content,
    finishReason,
    rawFinishReason,
    usage: await result.usage,
    response: await result.response,
  }
}

function toAnswer(
  { content, finishReason, rawFinishReason, usage, response }: SdkAnswer,
  inputs: readonly string[],
): ModelAnswer {
  let calls = 0
  const parts = content.flatMap((part): ModelAnswerContent[] => {
    if (part.type === 'text' || part.type === 'reasoning') {
      return [{ type: part.type, text: part.text, providerMetadata: part.providerMetadata }]
    }
    if (part.type !== 'tool-call') return []
    const { toolCallId: callId, toolName: tool, providerMetadata } = part
    return [{ type: 'tool-call', callId, tool, input: inputs[calls++] ?? '', providerMetadata }]
  })
  return {
    parts,
    // The package of Bedrock does not know this one.
    finishReason: rawFinishReason === 'model_context_window_exceeded' ? 'length' : finishReason,
    rawFinishReason: rawFinishReason ?? null,
    usage: toUsage(usage),
    responseId: toResponseId(response),
  }
}

/** The provider's id of the answer. The SDK makes one up where the answer has none; Bedrock has it in a header. */
function toResponseId({ id, headers }: SdkAnswer['response']): string | null {
  return headers?.['x-amzn-requestid'] ?? (id.startsWith('aitxt-') ? null : id)
}

function toUsage({ inputTokens, inputTokenDetails, outputTokens, outputTokenDetails }: LanguageModelUsage): ModelUsage {
  return {
    input_tokens: toCount(inputTokens),
    cache_read_tokens: toCount(inputTokenDetails.cacheReadTokens),
    cache_write_tokens: toCount(inputTokenDetails.cacheWriteTokens),
    output_tokens: toCount(outputTokens),
    reasoning_tokens: toCount(outputTokenDetails.reasoningTokens),
  }
}

function toCount(tokens: number | undefined): number | null {
  return tokens !== undefined && Number.isSafeInteger(tokens) ? tokens : null
}

// Otherwise the AI SDK prints warnings to the console, in another format than our logs.
globalThis.AI_SDK_LOG_WARNINGS = false
