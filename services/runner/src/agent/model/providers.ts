import type { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel } from 'ai'
import type { ModelConfig, ModelProvider } from '../agent-settings.ts'
import { limitAnswers } from './model-limits.ts'

type ProviderModel = Exclude<LanguageModel, string>

type RequestOptions = Readonly<Record<string, unknown>>

interface Provider {
  /** Its name in the semantic conventions for generative AI; for a compatible API that of the format. */
  readonly tracingName: string
  /** The key under which the provider's package reads its options and returns its metadata. */
  readonly optionsKey: string
  /** Options of every request, which those from the settings may replace. */
  readonly fixedOptions?: RequestOptions
  /** Whether its API makes functions strict unless they say otherwise, and then requires every field. */
  readonly hasStrictTools?: boolean
  /** Whether its API refuses reasoning that it gave to another account, which it encrypts for that. */
  readonly hasReasoningOfAccount?: boolean
  /** How a request marks the end of a prefix to cache; without it, the provider caches by itself or not at all. */
  readonly cacheMark?: (modelName: string) => RequestOptions | undefined
  /** The API's own base URL. */
  readonly baseUrl: (config: ModelConfig) => string
  /**
   * Imports the package of the provider. Every setting is passed on, also the base URL and an empty key: the packages
   * would otherwise read them from the environment.
   */
  readonly createModel: (config: ModelConfig, options: ProviderSettings) => Promise<ProviderModel>
}

interface ProviderSettings {
  readonly baseURL: string
  readonly apiKey: string
  readonly fetch: typeof fetch
}

export const MODEL_PROVIDERS: Readonly<Record<ModelProvider, Provider>> = {
  openai: {
    tracingName: 'openai',
    optionsKey: 'openai',
    // It would keep each answer for 30 days, and the next request would refer to it: a run continues from its own
    // journal.
    fixedOptions: { store: false },
    hasStrictTools: true,
    hasReasoningOfAccount: true,
    baseUrl: () => 'https://api.openai.com/v1',
    async createModel({ modelName }, options) {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI(options).responses(modelName)
    },
  },
  anthropic: {
    tracingName: 'anthropic',
    optionsKey: 'anthropic',
    cacheMark: () => ({ cacheControl: { type: 'ephemeral' } }),
    baseUrl: () => 'https://api.anthropic.com/v1',
    async createModel({ modelName }, options) {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic(options)(modelName)
    },
  },
  google: {
    tracingName: 'gcp.gemini',
    optionsKey: 'google',
    baseUrl: () => 'https://generativelanguage.googleapis.com/v1beta',
    async createModel({ modelName }, options) {
      const { createGoogle } = await import('@ai-sdk/google')
      return createGoogle(options)(modelName)
    },
  },
  bedrock: {
    tracingName: 'aws.bedrock',
    optionsKey: 'bedrock',
    // It refuses cache points of most other models; Amazon Nova takes them in the system text and messages, but refuses
    // them in tools.
    cacheMark: (modelName) => (modelName.includes('anthropic.') ? { cachePoint: { type: 'default' } } : undefined),
    baseUrl: ({ aws }) =>
      `https://bedrock-runtime.${aws?.region}.amazonaws.com${aws?.region.startsWith('cn-') ? '.cn' : ''}`,
    async createModel({ modelName, aws }, options) {
      const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock')
      return createAmazonBedrock({ ...aws, ...options })(modelName)
    },
  },
  'openai-compatible': {
    tracingName: 'openai',
    optionsKey: 'model',
    // The settings require one.
    baseUrl: () => '',
    async createModel({ modelName, apiKey }, { baseURL, fetch }) {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      return createOpenAICompatible({
        name: 'model',
        baseURL,
        fetch,
        // Local servers take requests without a key; this package reads none from the environment.
        ...(apiKey === null ? {} : { apiKey }),
        includeUsage: true,
        convertUsage: toUsage,
        transformRequestBody: (body) => withCompletionTokens(modelName, body),
      })(modelName)
    },
  },
}

/** Creates the model that the settings name. Loads the package of its provider and no other. */
export async function createProviderModel(config: ModelConfig, send: typeof fetch = fetch): Promise<ProviderModel> {
  return MODEL_PROVIDERS[config.provider].createModel(config, {
    baseURL: modelBaseUrl(config),
    apiKey: config.apiKey ?? '',
    fetch: limitAnswers(send, config.provider),
  })
}

/** The base URL of the model's API: the one in the settings, or the provider's own. */
export function modelBaseUrl(config: ModelConfig): string {
  return config.baseUrl ?? MODEL_PROVIDERS[config.provider].baseUrl(config)
}

type CompatibleSettings = Parameters<typeof createOpenAICompatible>[0]
type ConvertUsage = NonNullable<CompatibleSettings['convertUsage']>

/** As the package does it, and with the tokens that were written to the cache, which OpenAI bills apart. */
function toUsage(usage: Parameters<ConvertUsage>[0]): ReturnType<ConvertUsage> {
  const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = usage ?? {}
  const total = input ?? undefined
  const cacheRead = details?.cached_tokens ?? 0
  const { cache_write_tokens: written } = details ?? {}
  const cacheWrite = typeof written === 'number' ? written : undefined
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens ?? 0
  return {
    inputTokens: {
      total,
      noCache: total === undefined ? undefined : Math.max(0, total - cacheRead - (cacheWrite ?? 0)),
      cacheRead,
      cacheWrite,
    },
    outputTokens: {
      total: output ?? undefined,
      text: typeof output === 'number' ? Math.max(0, output - reasoning) : undefined,
      reasoning,
    },
  }
}

/**
 * OpenAI's reasoning models, which Azure and proxies offer as chat completions, refuse `max_tokens`. Azure calls them
 * as the operator does: there, the option `max_completion_tokens` says which name the limit has.
 */
function withCompletionTokens(modelName: string, body: Record<string, unknown>): Record<string, unknown> {
  const { max_tokens, max_completion_tokens: option, ...rest } = body
  const isReasoning = option !== undefined || /(^|\/)(gpt-[5-9]|o[1-9])/u.test(modelName)
  if (!isReasoning || max_tokens === undefined) return body
  const limits = [max_tokens, option].filter((limit) => typeof limit === 'number')
  return { ...rest, max_completion_tokens: Math.min(...limits) }
}
