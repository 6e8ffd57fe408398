import type { LanguageModelMiddleware } from 'ai'
import type { ModelConfig } from '../agent-settings.ts'
import { MODEL_PROVIDERS } from './providers.ts'

type CallParams = Awaited<ReturnType<NonNullable<LanguageModelMiddleware['transformParams']>>>
type Prompt = CallParams['prompt']
type Message = Prompt[number]
type ProviderOptions = NonNullable<CallParams['providerOptions']>

/** What the API gets where the conversation has a message of nothing but white space. */
const EMPTY_TEXT = '(no text)'

/** Adds the options from the settings to each request, and adapts it to what the provider's API accepts. */
export function adaptRequests({ provider, modelName, options }: ModelConfig): LanguageModelMiddleware {
  const { optionsKey, fixedOptions, hasStrictTools = false, cacheMark } = MODEL_PROVIDERS[provider]
  const providerOptions = { [optionsKey]: { ...fixedOptions, ...options.provider } } as ProviderOptions
  const mark = cacheMark?.(modelName)
  return {
    specificationVersion: 'v4',
    async transformParams({ params }) {
      const request = {
        ...params,
        ...options.call,
        prompt: params.prompt.map(withoutBlankTexts),
        providerOptions: { ...params.providerOptions, ...providerOptions },
      }
      if (hasStrictTools) return withoutStrictTools(request)
      return mark ? withCacheMarks(request, { [optionsKey]: mark } as ProviderOptions) : request
    },
  }
}

/** Anthropic, Bedrock and Google refuse text blocks that are empty or of white space only. */
function withoutBlankTexts(message: Message): Message {
  if (message.role !== 'assistant' && message.role !== 'user') return message
  const content = message.content.filter(
    (part) => part.type !== 'text' || part.text.trim() !== '' || part.providerOptions !== undefined,
  )
  if (content.length === message.content.length) return message
  const kept = content.length > 0 ? content : [{ type: 'text' as const, text: EMPTY_TEXT }]
  return { ...message, content: kept } as Message
}

function withoutStrictTools(request: CallParams): CallParams {
  const { tools } = request
  if (!tools) return request
  return { ...request, tools: tools.map((tool) => (tool.type === 'function' ? { ...tool, strict: false } : tool)) }
}

/**
 * Marks the prefixes that later requests repeat: the tools and the instructions, which the runs of a workflow have in
 * common, the first message, and the last one, up to which the run's next request is the same. Anthropic allows 4
 * marks, reads the longest prefix that it has cached, and looks back at most 20 blocks from a mark.
 */
function withCacheMarks(request: CallParams, mark: ProviderOptions): CallParams {
  const { prompt, tools } = request
  const marked = new Set([
    prompt.findIndex(({ role }) => role === 'system'),
    prompt.findIndex(({ role }) => role === 'user'),
    prompt.length - 1,
  ])
  return {
    ...request,
    prompt: prompt.map((message, index): Message => (marked.has(index) ? withOptions(message, mark) : message)),
    ...(tools && {
      tools: tools.map((tool, index) =>
        index === tools.length - 1 && tool.type === 'function' ? withOptions(tool, mark) : tool,
      ),
    }),
  }
}

function withOptions<Item extends { providerOptions?: ProviderOptions }>(item: Item, options: ProviderOptions) {
  return { ...item, providerOptions: { ...item.providerOptions, ...options } }
}
