import { readSettings, splitList } from '@workflow-service/service-kit'
import { type Static, Type } from 'typebox'
import { type AgentConfig, agentSettings, agentSettingsRules, toAgentConfig } from './agent/agent-settings.ts'

/** Every setting of the runner. A test compares docker-compose.yml with it. */
export const RunnerSettings = Type.Object(
  {
    DATABASE_URL: Type.String({
      format: 'postgres-url',
      writeOnly: true,
      description: 'The URL of PostgreSQL.',
      examples: ['postgres://workflow:secret@postgres:5432/workflow'],
    }),
    DATABASE_POOL_SIZE: Type.Integer({
      minimum: 2,
      maximum: 1_000,
      default: 10,
      description: 'Maximum connections of a process to PostgreSQL.',
      examples: [10],
    }),
    AMQP_URL: Type.String({
      format: 'amqp-url',
      writeOnly: true,
      description: 'The URL of RabbitMQ.',
      examples: ['amqp://workflow:secret@rabbitmq:5672'],
    }),
    AMQP_QUEUE_TYPE: Type.Unsafe<'quorum' | 'classic'>({
      type: 'string',
      enum: ['quorum', 'classic'],
      default: 'quorum',
      description: 'The type of the session queue; the same for gateways and runners.',
      examples: ['quorum'],
    }),
    DISPATCHER_URL: Type.String({
      format: 'http-url',
      description: 'The URL of the dispatcher.',
      examples: ['http://dispatcher:8081'],
    }),
    INTERNAL_API_TOKEN: Type.String({
      format: 'token-list',
      writeOnly: true,
      description:
        'Bearer token of the internal API, at least 32 characters. Of several, separated by commas, the dispatcher accepts all and its callers send the first.',
      examples: ['$(openssl rand -hex 32)'],
    }),
    HOST: Type.String({ default: '0.0.0.0', description: 'The address to listen on.', examples: ['0.0.0.0'] }),
    PORT: Type.Integer({
      minimum: 0,
      maximum: 65_535,
      default: 8082,
      description: 'The port of /healthz, /readyz and /metrics; 0 selects a free one.',
      examples: [8082],
    }),
    LOG_LEVEL: Type.Unsafe<string>({
      type: 'string',
      enum: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
      default: 'info',
      description: 'The lowest level of log lines to write.',
      examples: ['info'],
    }),
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
  agent: AgentConfig
}

/**
 * Reads the settings from the environment.
 * @throws SettingsError with all errors at once.
 */
export function readRunnerConfig(env: NodeJS.ProcessEnv = process.env): RunnerConfig {
  return toConfig(readSettings(RunnerSettings, env))
}

function toConfig(settings: Static<typeof RunnerSettings>): RunnerConfig {
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
    agent: toAgentConfig(settings),
  }
}
