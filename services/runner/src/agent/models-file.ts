import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compile, MEDIA_KINDS, type MediaKind, toFieldErrors } from '@workflow-service/contract'
import { SettingsError } from '@workflow-service/service-kit'
import type * as Yaml from 'yaml'
import {
  type AgentConfig,
  agentSettings,
  BUILTIN,
  type AgentSettings,
  type ModelConfig,
  type ModelPrices,
  PRICED_OUTPUT_TOKENS,
  PROVIDERS,
  toAgentConfig,
  toModelConfig,
} from './agent-settings.ts'
import { type ModelOptions, toModelOptions } from './model-options.ts'
import { type Static, Type } from '@workflow-service/contract/type'

const CLOSED = { additionalProperties: false }
const Price = Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 }))

/** A model of the file (docs/agents.md, "Several models"). */
const ModelEntry = Type.Object(
  {
    model: Type.String({ pattern: `^(${PROVIDERS.join('|')}):\\S+$` }),
    key: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
    base_url: Type.Optional(Type.String({ pattern: '^https?://\\S+$' })),
    aws_region: agentSettings.AWS_REGION,
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
    timeout_seconds: Type.Optional(agentSettings.AGENT_TIMEOUT_SECONDS),
    rate_limit_seconds: Type.Optional(agentSettings.AGENT_RATE_LIMIT_SECONDS),
    run_tokens: Type.Optional(agentSettings.AGENT_RUN_TOKENS),
    max_deliveries: Type.Optional(agentSettings.AGENT_MAX_DELIVERIES),
    max_output_tokens: agentSettings.AGENT_MAX_OUTPUT_TOKENS,
    history_tokens: Type.Optional(agentSettings.AGENT_HISTORY_TOKENS),
    streaming: Type.Optional(agentSettings.AGENT_STREAMING),
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
  return new Map(
    Object.entries(models).map(([name, entry]): [string, ModelConfig] => {
      const say = (field: string, message: string): void => report(`models.${name}${field && `.${field}`} ${message}`)
      if (!MODEL_NAME.test(name) || name === BUILTIN) {
        say('', `is not a name: use small letters, digits, ".", "_" and "-", at most 63, and not ${BUILTIN}`)
      }
      checkFallback(name, models, (message) => say('fallback', `${message}; ${known}`))
      if (entry.prices && currency === undefined) say('prices', 'need a "currency" for the file, such as USD')
      const apiKey = entry.key === undefined ? undefined : env[entry.key]?.trim() || undefined
      if (entry.key !== undefined && apiKey === undefined) {
        say('key', `names the environment variable ${entry.key}: set it`)
      }
      const config = toModelConfig({
        ...settings,
        AGENT_MODEL: entry.model,
        AGENT_BASE_URL: entry.base_url,
        AGENT_API_KEY: apiKey,
        AGENT_MODEL_OPTIONS: readOptions(entry, (message) => say('options', message)),
        AWS_REGION: entry.aws_region ?? settings.AWS_REGION,
        AGENT_TIMEOUT_SECONDS: entry.timeout_seconds ?? settings.AGENT_TIMEOUT_SECONDS,
        AGENT_RATE_LIMIT_SECONDS: entry.rate_limit_seconds ?? settings.AGENT_RATE_LIMIT_SECONDS,
        AGENT_RUN_TOKENS: entry.run_tokens ?? settings.AGENT_RUN_TOKENS,
        AGENT_MAX_DELIVERIES: entry.max_deliveries ?? settings.AGENT_MAX_DELIVERIES,
        AGENT_MAX_OUTPUT_TOKENS: entry.max_output_tokens ?? settings.AGENT_MAX_OUTPUT_TOKENS,
        AGENT_HISTORY_TOKENS: entry.history_tokens ?? settings.AGENT_HISTORY_TOKENS,
        AGENT_STREAMING: entry.streaming ?? settings.AGENT_STREAMING,
      })
      const missing = findMissing(config, entry)
      if (missing) say(missing.field, missing.message)
      return [
        name,
        {
          ...config,
          name,
          // A budget holds only for what the API cannot exceed.
          maxOutputTokens: config.maxOutputTokens ?? (entry.prices ? PRICED_OUTPUT_TOKENS : null),
          reads: entry.reads ?? config.reads,
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
  { provider, aws }: ModelConfig,
  { key, base_url }: ModelEntry,
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
