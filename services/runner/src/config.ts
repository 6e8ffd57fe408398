import {
  poolSizeSetting,
  portSetting,
  readSettings,
  SharedSettings,
  splitList,
  toTracingConfig,
  type TracingConfig,
  tracingParsers,
  tracingSettings,
} from '@workflow-service/service-kit'
import { type Static, Type } from 'typebox'
import {
  type AgentConfig,
  type AgentSettings,
  agentSettings,
  agentSettingsParsers,
  agentSettingsRules,
  toAgentConfig,
} from './agent/agent-settings.ts'

/** Every setting of the runner. The settings table and `.env.example` are generated from it. */
export const RunnerSettings = Type.Object(
  {
    DATABASE_URL: SharedSettings.DATABASE_URL,
    DATABASE_POOL_SIZE: poolSizeSetting({ default: 10 }),
    AMQP_URL: SharedSettings.AMQP_URL,
    AMQP_QUEUE_TYPE: SharedSettings.AMQP_QUEUE_TYPE,
    DISPATCHER_URL: SharedSettings.DISPATCHER_URL,
    INTERNAL_API_TOKEN: SharedSettings.INTERNAL_API_TOKEN,
    HOST: SharedSettings.HOST,
    PORT: portSetting({
      default: 8082,
      description: 'The port of /healthz, /readyz and /metrics; 0 selects a free one.',
    }),
    LOG_LEVEL: SharedSettings.LOG_LEVEL,
    RUNNER_CONCURRENCY: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      default: 100,
      description: 'Sessions that a process executes at once (its slots).',
      examples: [100],
    }),
    RUNNER_ORGANIZATION_SHARE: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 75,
      description: 'Percentage of the slots that one organization may use, so that others find free ones.',
      examples: [75],
    }),
    ...tracingSettings,
    ...agentSettings,
  },
  agentSettingsRules,
)

/** The runner's settings in the form that its code uses. */
export interface RunnerConfig {
  databaseUrl: string
  databasePoolSize: number
  /** Unused if the caller passes a session queue. */
  amqpUrl: string
  amqpQueueType: 'quorum' | 'classic'
  dispatcherUrl: string
  internalApiToken: string
  host: string
  port: number
  logLevel: string
  /** Maximum sessions at once. */
  concurrency: number
  /** Maximum sessions of one organization at once. */
  perOrganization: number
  tracing: TracingConfig
  agent: AgentConfig
}

/**
 * Reads the settings from the environment.
 * @throws SettingsError with all errors at once.
 */
export function readRunnerConfig(env: NodeJS.ProcessEnv = process.env): RunnerConfig {
  return toConfig(readSettings(RunnerSettings, env, { parsers }))
}

const parsers = { ...agentSettingsParsers, ...tracingParsers }

type ParsedSettings = AgentSettings & { OTEL_EXPORTER_OTLP_HEADERS: TracingConfig['headers'] }

function toConfig(settings: Omit<Static<typeof RunnerSettings>, keyof ParsedSettings> & ParsedSettings): RunnerConfig {
  const concurrency = settings.RUNNER_CONCURRENCY
  return {
    databaseUrl: settings.DATABASE_URL,
    databasePoolSize: settings.DATABASE_POOL_SIZE,
    amqpUrl: settings.AMQP_URL,
    amqpQueueType: settings.AMQP_QUEUE_TYPE,
    dispatcherUrl: settings.DISPATCHER_URL,
    internalApiToken: splitList(settings.INTERNAL_API_TOKEN)[0] ?? '',
    host: settings.HOST,
    port: settings.PORT,
    logLevel: settings.LOG_LEVEL,
    concurrency,
    perOrganization: Math.max(1, Math.floor((concurrency * settings.RUNNER_ORGANIZATION_SHARE) / 100)),
    tracing: toTracingConfig(settings),
    agent: toAgentConfig(settings),
  }
}
