import { MEDIA_KINDS, type MediaKind } from '@workflow-service/contract'
import type { RunFacts } from './agent.ts'
import type { ModelOptions } from './model-options.ts'
import { type Static, Type } from '@workflow-service/contract/type'

/** The value of AGENT_MODEL that selects the built-in agent, and the agent's name in the journal. */
export const BUILTIN = 'builtin'

export const PROVIDERS = ['openai', 'anthropic', 'google', 'bedrock', 'openai-compatible'] as const
export type ModelProvider = (typeof PROVIDERS)[number]

/** The agent's settings, a part of the runner's. `readAgentConfig` checks what a provider requires. */
export const agentSettings = {
  AGENT_MODEL: Type.String({
    pattern: `^(${BUILTIN}|(${PROVIDERS.join('|')}):\\S+)$`,
    default: BUILTIN,
    description:
      'What executes a run: builtin (no model, no network), or PROVIDER:NAME with the provider openai, anthropic or google (with AGENT_API_KEY), bedrock (with AWS_REGION) or openai-compatible (with AGENT_BASE_URL).',
    examples: ['anthropic:claude-sonnet-4-5'],
  }),
  AGENT_MODELS: Type.Optional(
    Type.String({
      description:
        'Path of a YAML or JSON file with several models, from which workflows choose by name, in place of AGENT_MODEL (docs/agents.md, "Several models"). The other AGENT_ settings are the defaults of its models.',
      examples: ['/etc/workflow-service/models.yaml'],
    }),
  ),
  AGENT_BASE_URL: Type.Optional(
    Type.String({
      format: 'http-url',
      description:
        "The base URL of the model's API, including its version if it has one; except for openai-compatible only if it is not the provider's own.",
      examples: ['https://models.example.com/v1'],
    }),
  ),
  AGENT_API_KEY: Type.Optional(
    Type.String({
      writeOnly: true,
      description: "The key of the model's API; for bedrock an API key of Amazon Bedrock.",
      examples: ['sk-...'],
    }),
  ),
  AGENT_MODEL_OPTIONS: Type.String({
    default: '{}',
    description:
      "Options of the model as a JSON object: temperature, topP, topK, seed, and those of the provider as its package of the AI SDK names them. For openai-compatible, any fields of the request's body.",
    examples: ['{"reasoningEffort":"low"}'],
  }),
  AWS_REGION: Type.Optional(
    Type.String({
      pattern: '^[a-z]{2,4}(-[a-z0-9]+)+$',
      description: 'For bedrock: the region of Amazon Bedrock.',
      examples: ['eu-central-1'],
    }),
  ),
  AWS_ACCESS_KEY_ID: Type.Optional(
    Type.String({
      writeOnly: true,
      description: 'For bedrock without AGENT_API_KEY: the access key that signs requests.',
      examples: ['AKIA…'],
    }),
  ),
  AWS_SECRET_ACCESS_KEY: Type.Optional(
    Type.String({
      writeOnly: true,
      description: 'For bedrock without AGENT_API_KEY: the secret of the access key.',
      examples: ['…'],
    }),
  ),
  AWS_SESSION_TOKEN: Type.Optional(
    Type.String({
      writeOnly: true,
      description: 'For bedrock: the session token of a temporary access key. The runner does not renew it.',
      examples: ['…'],
    }),
  ),
  AGENT_TIMEOUT_SECONDS: Type.Integer({
    minimum: 1,
    maximum: 280,
    default: 120,
    description: "Time limit for one answer of the model. Node's fetch has a limit of 300 s of its own.",
    examples: [120],
  }),
  AGENT_RATE_LIMIT_SECONDS: Type.Integer({
    minimum: 0,
    maximum: 604_800,
    default: 86_400,
    description:
      "How long one answer waits at most while the model's API limits the rate of requests (429, 529) or is unavailable (5xx, no connection). After 30 s a run waits without a slot.",
    examples: [86_400],
  }),
  AGENT_FALLBACK_SECONDS: Type.Integer({
    minimum: 0,
    maximum: 30,
    default: 30,
    description:
      'How long the API of a model is unavailable or limits requests before a run continues with the fallback that AGENT_MODELS has for the model.',
    examples: [30],
  }),
  AGENT_RUN_TOKENS: Type.Integer({
    minimum: 1,
    default: 1_000_000,
    description: 'Input and output tokens of one run; a run that has used them asks for no further answer and fails.',
    examples: [1_000_000],
  }),
  AGENT_MAX_DELIVERIES: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    default: 50,
    description: 'Payloads that a run with a model sends at most.',
    examples: [50],
  }),
  AGENT_MAX_OUTPUT_TOKENS: Type.Optional(
    Type.Integer({
      // OpenAI's Responses API refuses less.
      minimum: 16,
      maximum: 10_000_000,
      description:
        "Maximum tokens of one answer, with those of its reasoning; unset uses the limit of the model's API.",
      examples: [4_096],
    }),
  ),
  AGENT_HISTORY_TOKENS: Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    default: 8_000,
    description:
      "Maximum tokens (estimated) of the session's earlier runs in the prompt; when they take more, the model summarizes older runs. 0: none are read.",
    examples: [8_000],
  }),
  AGENT_READS: Type.String({
    pattern: `^((${MEDIA_KINDS.join('|')})(,(?!$)|$))*$`,
    default: '',
    description:
      'What the model reads besides text: pdf, image, or pdf,image. Files that a run refers to go to it; without, the run fails with file_not_readable.',
    examples: ['pdf,image'],
  }),
  AGENT_STREAMING: Type.Boolean({
    default: false,
    description: "Whether the model's answers are read as a stream, for servers that would time out otherwise.",
    examples: ['false'],
  }),
}

export const AgentSettings = Type.Object(agentSettings)
export type AgentSettings = Omit<Static<typeof AgentSettings>, 'AGENT_MODEL_OPTIONS'> & {
  readonly AGENT_MODEL_OPTIONS: object
}

export interface AgentConfig {
  /** What executes the runs of workflows that choose nothing: a name in `models`, or `builtin`. */
  readonly defaultModel: string
  /** By name. Workflows choose among them and the built-in agent. */
  readonly models: ReadonlyMap<string, ModelConfig>
}

export interface ModelConfig {
  /** What workflows and journals call it: its name in AGENT_MODELS, or the value of AGENT_MODEL. */
  readonly name: string
  readonly provider: ModelProvider
  /** The model's own name. */
  readonly modelName: string
  readonly baseUrl: string | null
  readonly apiKey: string | null
  /** Whether the key is one of the organization's own. */
  readonly isOwnKey?: boolean
  /** Credentials of Amazon Bedrock; null for every other provider. */
  readonly aws: AwsConfig | null
  readonly options: ModelOptions
  readonly timeoutMs: number
  /** How long one answer waits at most while the model's API limits requests or is unavailable. */
  readonly maxWaitMs: number
  /** After how long its fallback takes over. */
  readonly fallbackAfterMs: number
  readonly runTokens: number
  readonly maxDeliveries: number
  readonly maxOutputTokens: number | null
  readonly historyTokens: number
  readonly isStreaming: boolean
  /** What it reads besides text. */
  readonly reads: readonly MediaKind[]
  /** Where its API processes data, for people; null if the settings do not say. */
  readonly dataRegion: string | null
  /** Null: its answers have no known cost. */
  readonly prices: ModelPrices | null
  /** The name of the model that continues a run while this one's API is unavailable. */
  readonly fallback: string | null
  /** The organizations that may use it; empty: all. */
  readonly organizationIds: readonly string[]
}

export function isOfferedTo(
  { organizationIds }: ModelConfig,
  { organizationId }: Pick<RunFacts, 'organizationId'>,
): boolean {
  return organizationIds.length === 0 || organizationIds.includes(organizationId)
}

/** The limit of an answer's tokens of a model that has prices and no limit of its own. */
export const PRICED_OUTPUT_TOKENS = 8_192

/** The built-in agent alone. */
export const BUILTIN_ONLY: AgentConfig = { defaultModel: BUILTIN, models: new Map() }

/** Millionths of the currency for a million tokens. */
export interface ModelPrices {
  /** An ISO 4217 code. */
  readonly currency: string
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number
}

/** Region and, unless there is an API key, the access key. */
export interface AwsConfig {
  readonly region: string
  readonly accessKeyId?: string
  readonly secretAccessKey?: string
  readonly sessionToken?: string
}
