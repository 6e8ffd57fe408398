import { type Static, type TObject, Type } from 'typebox'
import { BUILTIN } from './builtin/builtin-agent.ts'

const PROVIDERS = ['openai-compatible', 'anthropic'] as const
export type ModelProvider = (typeof PROVIDERS)[number]

/** The agent's settings, a part of the runner's. `agentSettingsRules` are the constraints between them. */
export const agentSettings = {
  AGENT_MODEL: Type.String({
    pattern: `^(${BUILTIN}|(${PROVIDERS.join('|')}):\\S+)$`,
    default: BUILTIN,
    description:
      'What executes a run: builtin (no model, no network), openai-compatible:NAME with AGENT_BASE_URL, or anthropic:NAME with AGENT_API_KEY.',
    examples: ['anthropic:claude-sonnet-4-5'],
  }),
  AGENT_BASE_URL: Type.Optional(
    Type.String({
      format: 'http-url',
      description:
        "The base URL of the model's API, including its version; for anthropic only if it is not Anthropic's.",
      examples: ['https://models.example.com/v1'],
    }),
  ),
  AGENT_API_KEY: Type.Optional(
    Type.String({ writeOnly: true, description: "The key of the model's API.", examples: ['sk-…'] }),
  ),
  AGENT_TIMEOUT_SECONDS: Type.Integer({
    minimum: 1,
    maximum: 280,
    default: 120,
    description: "Time limit for one answer of the model. Node's fetch has a limit of 300 s of its own.",
    examples: [120],
  }),
  AGENT_RETRY_SECONDS: Type.Integer({
    minimum: 0,
    maximum: 3_600,
    default: 300,
    description: 'Total delay before retries of one answer, while the model is overloaded or unavailable.',
    examples: [300],
  }),
  AGENT_MAX_OUTPUT_TOKENS: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Maximum tokens of one answer; unset uses the limit of the model's API.",
      examples: [4_096],
    }),
  ),
  AGENT_HISTORY_TOKENS: Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    default: 8_000,
    description:
      "Maximum tokens (estimated) of the session's earlier runs in the prompt; older runs are left out whole.",
    examples: [8_000],
  }),
  AGENT_STREAMING: Type.Boolean({
    default: false,
    description: "Whether the model's answers are read as a stream, for servers that would time out otherwise.",
    examples: ['false'],
  }),
}

/** The settings that each provider requires, as JSON Schema. */
export const agentSettingsRules = {
  allOf: [requiredFor('openai-compatible', 'AGENT_BASE_URL'), requiredFor('anthropic', 'AGENT_API_KEY')],
}

function requiredFor(provider: ModelProvider, name: keyof typeof agentSettings) {
  return {
    if: {
      type: 'object',
      properties: { AGENT_MODEL: { type: 'string', pattern: `^${provider}:` } },
      required: ['AGENT_MODEL'],
    },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { type: 'object', properties: { [name]: true }, required: [name] },
  }
}

export type AgentSettings = Static<TObject<typeof agentSettings>>

/** The agent that executes the runs. */
export type AgentConfig = { readonly kind: 'builtin' } | ModelConfig

export interface ModelConfig {
  readonly kind: 'model'
  readonly provider: ModelProvider
  /** The model's own name. */
  readonly modelName: string
  readonly baseUrl: string | null
  readonly apiKey: string | null
  readonly timeoutMs: number
  readonly retryMs: number
  readonly maxOutputTokens: number | null
  readonly historyTokens: number
  readonly isStreaming: boolean
}

/** The checked settings as the agent's configuration. */
export function toAgentConfig(settings: AgentSettings): AgentConfig {
  const [, provider, modelName] = /^([^:]+):(.+)$/u.exec(settings.AGENT_MODEL) ?? []
  if (provider === undefined || modelName === undefined) return { kind: 'builtin' }
  return {
    kind: 'model',
    provider: provider as ModelProvider,
    modelName,
    baseUrl: settings.AGENT_BASE_URL ?? null,
    apiKey: settings.AGENT_API_KEY ?? null,
    timeoutMs: settings.AGENT_TIMEOUT_SECONDS * 1_000,
    retryMs: settings.AGENT_RETRY_SECONDS * 1_000,
    maxOutputTokens: settings.AGENT_MAX_OUTPUT_TOKENS ?? null,
    historyTokens: settings.AGENT_HISTORY_TOKENS,
    isStreaming: settings.AGENT_STREAMING,
  }
}
