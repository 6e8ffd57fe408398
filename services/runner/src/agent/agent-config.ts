import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compile, isJsonObject, MEDIA_KINDS, type MediaKind, toFieldErrors } from '@workflow-service/contract'
import { describeSetting, readSettings, SettingsError } from '@workflow-service/service-kit'
import type * as Yaml from 'yaml'
import {
  type AgentConfig,
  agentSettings,
  AgentSettings,
  type AwsConfig,
  BUILTIN,
  BUILTIN_ONLY,
  type ModelConfig,
  type ModelPrices,
  type ModelProvider,
  PRICED_OUTPUT_TOKENS,
  PROVIDERS,
} from './agent-settings.ts'
import { toModelOptions } from './model-options.ts'
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
 * Reads the agents that AGENT_MODELS or AGENT_MODEL describe.
 * @throws SettingsError with every error of the settings at once, or else every error of the model or the file.
 */
export function readAgentConfig(env: NodeJS.ProcessEnv): AgentConfig {
  const settings = readSettings(AgentSettings, env, { parsers: { AGENT_MODEL_OPTIONS: parseObject } })
  const { AGENT_MODELS: path, AGENT_MODEL: model } = settings
  if (path === undefined && model === BUILTIN) return BUILTIN_ONLY
  const errors: string[] = []
  const config = path === undefined ? readModel(settings, errors) : readModels(path, settings, env, errors)
  if (!config || errors.length > 0) throw new SettingsError(errors)
  return config
}

function parseObject(text: string): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`is not JSON (${error instanceof Error ? error.message : String(error)})`, { cause: error })
  }
  if (!isJsonObject(value)) throw new Error('must be a JSON object')
  return value
}

/** The settings that have what a field of AGENT_MODELS has. */
const SETTINGS: Readonly<Partial<Record<keyof ModelEntry, string>>> = {
  key: 'AGENT_API_KEY',
  base_url: 'AGENT_BASE_URL',
  aws_region: 'AWS_REGION',
  options: 'AGENT_MODEL_OPTIONS',
}

function readModel(settings: AgentSettings, errors: string[]): AgentConfig {
  const { AGENT_MODEL: model, AGENT_BASE_URL: base_url, AGENT_MODEL_OPTIONS: options, AGENT_API_KEY } = settings
  const report: Report = (field, message) => {
    const name = SETTINGS[field] ?? field
    errors.push(`${name} ${message}${describeSetting(AgentSettings, name)}`)
  }
  const config = toModelConfig(model, { model, base_url, options }, { settings, apiKey: AGENT_API_KEY, report })
  return { defaultModel: model, models: new Map([[model, config]]) }
}

function readModels(
  path: string,
  settings: AgentSettings,
  env: NodeJS.ProcessEnv,
  errors: string[],
): AgentConfig | undefined {
  const report = (message: string): void => void errors.push(`AGENT_MODELS (${path}): ${message}`)
  if (settings.AGENT_MODEL !== BUILTIN)
    report('AGENT_MODEL is set too: remove it, and name it as "default" in the file')
  const file = readModelsFile(path, report)
  if (!file) return undefined
  const { default: defaultModel, currency, models } = file
  const names = Object.keys(models)
  const known = names.length > 0 ? `the models are ${names.join(', ')}` : 'add one to "models"'
  if (defaultModel !== BUILTIN && !names.includes(defaultModel)) {
    report(`default ${defaultModel} is neither ${BUILTIN} nor a model; ${known}`)
  }
  const configs = Object.entries(models).map(([name, entry]): [string, ModelConfig] => {
    const reportOf: Report = (field, message) => report(`models.${name}.${field} ${message}`)
    if (!MODEL_NAME.test(name) || name === BUILTIN) {
      report(
        `models.${name} is not a name: use small letters, digits, ".", "_" and "-", at most 63, and not ${BUILTIN}`,
      )
    }
    checkFallback(name, models, (message) => reportOf('fallback', `${message}; ${known}`))
    if (entry.prices && currency === undefined) reportOf('prices', 'need a "currency" for the file, such as USD')
    const apiKey = entry.key === undefined ? undefined : env[entry.key]?.trim() || undefined
    if (entry.key !== undefined && apiKey === undefined) {
      reportOf('key', `names the environment variable ${entry.key}: set it`)
    }
    return [name, toModelConfig(name, entry, { settings, apiKey, currency, report: reportOf })]
  })
  return { defaultModel, models: new Map(configs) }
}

function readModelsFile(path: string, report: (message: string) => void): Static<typeof ModelsFile> | undefined {
  let value: unknown
  try {
    // Loaded only with a file, because of its memory. JSON is YAML.
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

/** A chain of fallbacks ends. */
function checkFallback(name: string, models: Record<string, ModelEntry>, report: (message: string) => void): void {
  const seen = new Set([name])
  for (let next = models[name]?.fallback; next !== undefined; next = models[next]?.fallback) {
    if (!Object.hasOwn(models, next)) return seen.size === 1 ? report(`${next} is no model`) : undefined
    if (seen.has(next)) return report(`leads back to ${next}`)
    seen.add(next)
  }
}

type Report = (field: keyof ModelEntry, message: string) => void

interface ModelOrigin {
  readonly settings: AgentSettings
  readonly apiKey: string | undefined
  readonly currency?: string | undefined
  readonly report: Report
}

/** The model with the limits of the settings where the entry has none. Reports what its provider requires. */
function toModelConfig(
  name: string,
  entry: ModelEntry,
  { settings, apiKey, currency, report }: ModelOrigin,
): ModelConfig {
  const colon = entry.model.indexOf(':')
  const provider = entry.model.slice(0, colon) as ModelProvider
  const region = entry.aws_region ?? settings.AWS_REGION
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN } = settings
  const hasAccessKey = provider === 'bedrock' && accessKeyId !== undefined && secretAccessKey !== undefined
  const why = `is required for ${provider}`
  if (provider === 'openai-compatible' && entry.base_url === undefined) report('base_url', why)
  if (entry.base_url !== undefined && !URL.canParse(entry.base_url)) report('base_url', 'must be a URL')
  if (provider === 'bedrock' && region === undefined) report('aws_region', `${why}, or AWS_REGION`)
  if (provider !== 'openai-compatible' && !(apiKey ?? entry.key) && !hasAccessKey) {
    const or = provider === 'bedrock' ? ', or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY' : ''
    report('key', `${why}${or}; in AGENT_MODELS it is the name of the environment variable that has the key`)
  }
  // With others no request can be made. A server that needs no key may have "not needed" as one.
  if (apiKey && !/^[\x20-\x7e]+$/.test(apiKey)) {
    const named = entry.key === undefined ? '' : `names the environment variable ${entry.key}, whose value `
    report('key', `${named}must have only letters, digits and signs of ASCII`)
  }
  const aws: AwsConfig = {
    region: region ?? '',
    ...(hasAccessKey ? { accessKeyId, secretAccessKey } : {}),
    ...(AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {}),
  }
  return {
    name,
    provider,
    modelName: entry.model.slice(colon + 1),
    baseUrl: entry.base_url ?? null,
    apiKey: apiKey ?? null,
    aws: provider === 'bedrock' ? aws : null,
    options: toModelOptions(entry.options ?? {}, (message) => report('options', message)),
    timeoutMs: (entry.timeout_seconds ?? settings.AGENT_TIMEOUT_SECONDS) * 1_000,
    maxWaitMs: (entry.rate_limit_seconds ?? settings.AGENT_RATE_LIMIT_SECONDS) * 1_000,
    fallbackAfterMs: settings.AGENT_FALLBACK_SECONDS * 1_000,
    runTokens: entry.run_tokens ?? settings.AGENT_RUN_TOKENS,
    maxDeliveries: entry.max_deliveries ?? settings.AGENT_MAX_DELIVERIES,
    // A budget holds only for what the API cannot exceed.
    maxOutputTokens:
      entry.max_output_tokens ?? settings.AGENT_MAX_OUTPUT_TOKENS ?? (entry.prices ? PRICED_OUTPUT_TOKENS : null),
    historyTokens: entry.history_tokens ?? settings.AGENT_HISTORY_TOKENS,
    isStreaming: entry.streaming ?? settings.AGENT_STREAMING,
    reads: entry.reads ?? (settings.AGENT_READS.split(',').filter(Boolean) as MediaKind[]),
    dataRegion: entry.data_region ?? null,
    prices: toPrices(entry, currency),
    fallback: entry.fallback ?? null,
    organizationIds: (entry.organizations ?? []).map((id) => id.toLowerCase()),
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
