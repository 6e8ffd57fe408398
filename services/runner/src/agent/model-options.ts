/** Options of a model: those of the AI SDK for all providers, and those of the provider. */
export interface ModelOptions {
  readonly call: Readonly<Partial<Record<CallOption, number>>>
  /** What the provider's package, or for `openai-compatible` its API, takes. */
  readonly provider: Readonly<Record<string, unknown>>
}

const CALL_OPTIONS = ['temperature', 'topP', 'topK', 'seed'] as const
type CallOption = (typeof CALL_OPTIONS)[number]

/** Options that the runner sets itself, each with the setting or reason that applies instead. */
const RESERVED: Readonly<Record<string, string>> = {
  model: 'the model is set by AGENT_MODEL',
  messages: 'the runner writes the messages',
  tools: 'the runner defines the tools',
  stream: 'use AGENT_STREAMING',
  maxOutputTokens: 'use AGENT_MAX_OUTPUT_TOKENS',
  store: 'answers are never stored at the provider',
}

/** Separates the options of all models from those of the provider, which `checkModelOptions` checks. */
export function toModelOptions(options: object, report: (message: string) => void = () => {}): ModelOptions {
  const call: Partial<Record<CallOption, number>> = {}
  const provider: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const option = CALL_OPTIONS.find((each) => each === name)
    if (Object.hasOwn(RESERVED, name)) report(`must not have ${name}: ${RESERVED[name]}`)
    else if (option === undefined) provider[name] = value
    else if (typeof value === 'number' && Number.isFinite(value)) call[option] = value
    else report(`must have a number as ${name}`)
  }
  return { call, provider }
}
