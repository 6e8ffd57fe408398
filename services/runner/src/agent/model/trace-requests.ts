import type { Tracing } from '@workflow-service/service-kit'
import type { ModelConfig, ModelProvider } from '../agent-settings.ts'
import { ModelError } from './model-error.ts'
import type { AskModel } from './model-question.ts'
import { modelBaseUrl } from './providers.ts'

/** How the semantic conventions for generative AI name the providers; for a compatible API it is the format's name. */
const PROVIDER_NAMES: Readonly<Record<ModelProvider, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'gcp.gemini',
  bedrock: 'aws.bedrock',
  'openai-compatible': 'openai',
}

/**
 * Makes each request to the model a span, after the semantic conventions for generative AI (`gen_ai.client.inference`): which model was asked,
 * how the request ended and its tokens, but nothing of the question, of the answer or of an error's message.
 */
export function traceRequests(ask: AskModel, config: ModelConfig, tracing: Tracing): AskModel {
  const { hostname, port, protocol } = new URL(modelBaseUrl(config))
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': PROVIDER_NAMES[config.provider],
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
          'gen_ai.usage.input_tokens': usage.inputTokens,
          'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
          'gen_ai.usage.cache_write.input_tokens': usage.cacheWriteTokens,
          'gen_ai.usage.output_tokens': usage.outputTokens,
          'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
        })
        return answer
      } catch (error) {
        span.fail(error instanceof ModelError ? error.code : abort.aborted ? 'aborted' : '_OTHER')
        throw error
      }
    })
}
