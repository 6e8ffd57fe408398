import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compile, MEDIA_KINDS, type MediaKind, toFieldErrors } from '@workflow-service/contract'
import { SettingsError } from '@workflow-service/service-kit'
import type { Static } from 'typebox'
import type * as Yaml from 'yaml'
import {
  type AgentConfig,
  type AgentSettings,
  type ModelConfig,
  type ModelPrices,
  PRICED_OUTPUT_TOKENS,
  PROVIDERS,
  splitModel,
  toAgentConfig,
  toAwsConfig,
  toModelLimits,
} from './agent-settings.ts'
import { BUILTIN } from './builtin/builtin-agent.ts'
import { type ModelOptions, toModelOptions } from './model-options.ts'
import { Type } from '@workflow-service/contract/type'

const CLOSED = { additionalProperties: false }
const Price = Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 }))
const Count = (minimum: number, maximum?: number) =>
  Type.Optional(Type.Integer({ minimum, ...(maximum === undefined ? {} : { maximum }) }))

/** A model of the file (docs/agents.md, "Several models"). */
const ModelEntry = Type.Object(
  {
    model: Type.String({ pattern: `^(${PROVIDERS.join('|')}):\\S+$` }),
    key: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
    base_url: Type.Optional(Type.String({ pattern: '^https?://\\S+$' })),
    aws_region: Type.Optional(Type.String({ pattern: '^[a-z]{2,4}(-[a-z0-9]+)+$' })),
    options: Type.Optional(Type.Object({}, { additionalProperties: true })),
    reads: Type.Optional(Type.Array(Type.Unsafe<MediaKind>({ enum: [...MEDIA_KINDS] }), { uniqueItems: true })),
    data_region: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    prices: Type.Optional(
      Type.Object(
        {
          input: Type.Number({ minimum: 0, maximum: 1_000_000 }),
          cache_read: Price,
          cache_write: Price,
          output: Type.Number({ minimum: 0, maximum: 1_000_000 }),
          reasoning: Price,
        },
        CLOSED,
      ),
    ),
    fallback: Type.Optional(Type.String()),
    organizations: Type.Optional(Type.Array(Type.String({ format: 'uuid' }), { minItems: 1 })),
    timeout_seconds: Count(1, 280),
    rate_limit_seconds: Count(0, 604_800),
    run_tokens: Count(1),
    max_deliveries: Count(1, 1_000),
    // OpenAI's Responses API refuses less.
    max_output_tokens: Count(16),
    history_tokens: Count(0, 1_000_000),
    streaming: Type.Optional(Type.Boolean()),
  },
  CLOSED,
)
type ModelEntry = Static<typeof ModelEntry>

/** Names are short, and no PROVIDER:NAME: in a journal, both look different. */
const MODEL_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/u

const ModelsFile = Type.Object(
  {
    default: Type.String(),
    currency: Type.Optional(Type.String({ pattern: '^[A-Z]{3}$' })),
    models: Type.Record(Type.String(), ModelEntry),
  },
  CLOSED,
)

/**
 * The agents that AGENT_MODELS or AGENT_MODEL describe.
 * @throws SettingsError with every error of the file at once.
 */
export function readAgentConfig(settings: AgentSettings, env: NodeJS.ProcessEnv): AgentConfig {
  const { AGENT_MODELS: path } = settings
  if (path === undefined) return toAgentConfig(settings)
  const errors: string[] = []
  const report = (message: string): void => void errors.push(`AGENT_MODELS (${path}): ${message}`)
  if (settings.AGENT_MODEL !== BUILTIN)
    report('AGENT_MODEL is set too: remove it, and name it as "default" in the file')
  const file = readModelsFile(path, report)
  const models = file && toModels(file, settings, env, report)
  if (!models || errors.length > 0) throw new SettingsError(errors)
  return { defaultModel: file.default, models }
}

function readModelsFile(path: string, report: (message: string) => void): Static<typeof ModelsFile> | undefined {
  let value: unknown
  try {
    // Loaded only with a file: it takes 3 MiB. JSON is YAML.
    const { parse } = createRequire(import.meta.url)('yaml') as typeof Yaml
    value = parse(readFileSync(path, 'utf8'))
  } catch (error) {
    report(`cannot be read as YAML or JSON: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`)
    return undefined
  }
  const validate = compile(ModelsFile)
  if (validate(value)) return value
  for (const { field, message } of toFieldErrors(validate.errors ?? [])) {
    report(`${field === 'body' ? 'the file' : field} ${message}`)
  }
  return undefined
}

/** Checks what a schema cannot. */
function toModels(
  { default: defaultModel, currency, models }: Static<typeof ModelsFile>,
  settings: AgentSettings,
  env: NodeJS.ProcessEnv,
  report: (message: string) => void,
): ReadonlyMap<string, ModelConfig> {
  const names = Object.keys(models)
  const known = names.length > 0 ? `the models are ${names.join(', ')}` : 'add one to "models"'
  if (defaultModel !== BUILTIN && !names.includes(defaultModel)) {
    report(`default ${defaultModel} is neither ${BUILTIN} nor a model; ${known}`)
  }
  const limits = toModelLimits(settings)
  return new Map(
    Object.entries(models).map(([name, entry]): [string, ModelConfig] => {
      const say = (field: string, message: string): void => report(`models.${name}${field && `.${field}`} ${message}`)
      if (!MODEL_NAME.test(name) || name === BUILTIN) {
        say('', `is not a name: use small letters, digits, ".", "_" and "-", at most 63, and not ${BUILTIN}`)
      }
      checkFallback(name, models, (message) => say('fallback', `${message}; ${known}`))
      if (entry.prices && currency === undefined) say('prices', 'need a "currency" for the file, such as USD')
      const { provider, modelName } = splitModel(entry.model)
      const apiKey = entry.key === undefined ? null : (env[entry.key]?.trim() ?? '') || null
      if (entry.key !== undefined && apiKey === null) say('key', `names the environment variable ${entry.key}: set it`)
      const aws = provider === 'bedrock' ? toAwsConfig(settings, entry.aws_region ?? settings.AWS_REGION) : null
      const missing = findMissing(provider, entry, aws)
      if (missing) say(missing.field, missing.message)
      return [
        name,
        {
          name,
          provider,
          modelName,
          apiKey,
          aws,
          baseUrl: entry.base_url ?? null,
          options: readOptions(entry, (message) => say('options', message)),
          timeoutMs: entry.timeout_seconds === undefined ? limits.timeoutMs : entry.timeout_seconds * 1_000,
          fallbackAfterMs: limits.fallbackAfterMs,
          maxWaitMs: entry.rate_limit_seconds === undefined ? limits.maxWaitMs : entry.rate_limit_seconds * 1_000,
          runTokens: entry.run_tokens ?? limits.runTokens,
          maxDeliveries: entry.max_deliveries ?? limits.maxDeliveries,
          // A budget holds only for what the API cannot exceed.
          maxOutputTokens:
            entry.max_output_tokens ?? limits.maxOutputTokens ?? (entry.prices ? PRICED_OUTPUT_TOKENS : null),
          historyTokens: entry.history_tokens ?? limits.historyTokens,
          isStreaming: entry.streaming ?? limits.isStreaming,
          reads: entry.reads ?? limits.reads,
          dataRegion: entry.data_region ?? null,
          prices: toPrices(entry, currency),
          fallback: entry.fallback ?? null,
          organizationIds: (entry.organizations ?? []).map((id) => id.toLowerCase()),
        },
      ]
    }),
  )
}

/** A chain of fallbacks ends. */
function checkFallback(name: string, models: Record<string, ModelEntry>, report: (message: string) => void): void {
  const seen = new Set([name])
  for (let next = models[name]?.fallback; next !== undefined; next = models[next]?.fallback) {
    if (!Object.hasOwn(models, next)) return seen.size === 1 ? report(`${next} is no model`) : undefined
    if (seen.has(next)) return report(`leads back to ${next}`)
    seen.add(next)
  }
}

/** What the provider needs, as for AGENT_MODEL. */
function findMissing(
  provider: ModelConfig['provider'],
  { key, base_url }: ModelEntry,
  aws: ModelConfig['aws'],
): { field: string; message: string } | undefined {
  if (provider === 'openai-compatible') {
    return base_url === undefined ? { field: 'base_url', message: 'is required for openai-compatible' } : undefined
  }
  if (provider !== 'bedrock') {
    const message = `is required for ${provider}: the name of the environment variable that has the key`
    return key === undefined ? { field: 'key', message } : undefined
  }
  if (aws?.region === '') return { field: 'aws_region', message: 'is required for bedrock, or AWS_REGION' }
  const message = 'is required for bedrock, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
  return key === undefined && aws?.accessKeyId === undefined ? { field: 'key', message } : undefined
}

function readOptions({ options = {} }: ModelEntry, report: (message: string) => void): ModelOptions {
  try {
    return toModelOptions(options)
  } catch (error) {
    report(error instanceof Error ? error.message : String(error))
    return { call: {}, provider: {} }
  }
}

/** What a price is not given for costs as the kind of tokens of which it is a part. */
function toPrices({ prices }: ModelEntry, currency = ''): ModelPrices | null {
  if (!prices) return null
  const { input, output, cache_read = input, cache_write = input, reasoning = output } = prices
  return {
    currency,
    input: toMicros(input),
    cacheRead: toMicros(cache_read),
    cacheWrite: toMicros(cache_write),
    output: toMicros(output),
    reasoning: toMicros(reasoning),
  }
}

function toMicros(price: number): number {
  return Math.round(price * 1_000_000)
}
