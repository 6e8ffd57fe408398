/** Options of a model, from AGENT_MODEL_OPTIONS. */
export interface ModelOptions {
  /** The AI SDK's own settings of a call. */
  readonly call: Readonly<Partial<Record<CallOption, number>>>
  /** What the provider's package, or for `openai-compatible` its API, takes. */
  readonly provider: Readonly<Record<string, unknown>>
}

/** The settings that the AI SDK has in common for all providers, with their ranges. */
const CALL_OPTIONS = {
  temperature: { minimum: 0, maximum: 2 },
  topP: { minimum: 0, maximum: 1 },
  topK: { minimum: 1, maximum: 1_000, isWhole: true },
  seed: { minimum: -(2 ** 31), maximum: 2 ** 31 - 1, isWhole: true },
} satisfies Record<string, { minimum: number; maximum: number; isWhole?: boolean }>
type CallOption = keyof typeof CALL_OPTIONS

/** Options that the runner sets itself, each with the setting or reason that applies instead. */
const RESERVED: Readonly<Record<string, string>> = {
  model: 'the model is set by AGENT_MODEL',
  messages: 'the runner writes the messages',
  tools: 'the runner defines the tools',
  stream: 'use AGENT_STREAMING',
  maxOutputTokens: 'use AGENT_MAX_OUTPUT_TOKENS',
  store: 'answers are never stored at the provider',
}

/**
 * Reads AGENT_MODEL_OPTIONS.
 * @throws an error whose message continues the setting's name.
 */
export function parseModelOptions(text: string): ModelOptions {
  return toModelOptions(parseObject(text))
}

/**
 * Separates the options of all models from those of the provider.
 * @throws an error whose message continues what the options are called.
 */
export function toModelOptions(options: object): ModelOptions {
  const call: Partial<Record<CallOption, number>> = {}
  const provider: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options)) {
    const reason = Object.hasOwn(RESERVED, name) ? RESERVED[name] : undefined
    if (reason !== undefined) throw new Error(`must not have ${name}: ${reason}`)
    if (isCallOption(name)) call[name] = checkNumber(name, value)
    else provider[name] = value
  }
  return { call, provider }
}

function parseObject(text: string): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`is not JSON (${error instanceof Error ? error.message : String(error)})`, { cause: error })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('must be a JSON object')
  return value
}

function isCallOption(name: string): name is CallOption {
  return Object.hasOwn(CALL_OPTIONS, name)
}

function checkNumber(name: CallOption, value: unknown): number {
  const { minimum, maximum, isWhole }: { minimum: number; maximum: number; isWhole?: boolean } = CALL_OPTIONS[name]
  if (typeof value === 'number' && value >= minimum && value <= maximum && (!isWhole || Number.isInteger(value))) {
    return value
  }
  throw new Error(`must have ${isWhole ? 'a whole number' : 'a number'} from ${minimum} to ${maximum} as ${name}`)
}
