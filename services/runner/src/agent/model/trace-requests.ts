import type { Tracing } from '@workflow-service/service-kit'
import type { ModelConfig } from '../agent-settings.ts'
import { ModelError } from './model-error.ts'
import type { AskModel } from './model-question.ts'
import { MODEL_PROVIDERS, modelBaseUrl } from './providers.ts'

/**
 * Makes each request to the model a span, after the semantic conventions for generative AI (`gen_ai.client.inference`):
 * which model was asked, how the request ended and its tokens, but nothing of the question, of the answer or of an
 * error's message.
 */
export function traceRequests(ask: AskModel, config: ModelConfig, tracing: Tracing): AskModel {
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
