import {
  readSettings,
  settingsErrors,
  SharedSettings,
  splitList,
  toClientConfig,
  toServiceConfig,
} from '@workflow-service/service-kit'
import { readAgentConfig } from './agent/agent-config.ts'
import { agentSettings } from './agent/agent-settings.ts'
import { Type } from '@workflow-service/contract/type'

/** Every setting of the runner. The settings table and `.env.example` are generated from it. */
export const RunnerSettings = Type.Object({
  DATABASE_URL: SharedSettings.DATABASE_URL,
  DATABASE_POOL_SIZE: SharedSettings.poolSize({ default: 10 }),
  AMQP_URL: SharedSettings.AMQP_URL,
  AMQP_QUEUE_TYPE: SharedSettings.AMQP_QUEUE_TYPE,
  DISPATCHER_URL: SharedSettings.DISPATCHER_URL,
  INTERNAL_API_TOKEN: SharedSettings.INTERNAL_API_TOKEN,
  HOST: SharedSettings.HOST,
  PORT: SharedSettings.port({
    default: 8082,
    description: 'The port of /healthz, /readyz and /metrics; 0 selects a free one.',
  }),
  SECRETS_KEY: Type.Optional(SharedSettings.SECRETS_KEY),
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
  ...SharedSettings.tracing,
  ...agentSettings,
})

/**
 * Reads the settings from the environment.
 * @throws SettingsError with all errors at once.
 */
export function readRunnerConfig(env: NodeJS.ProcessEnv = process.env) {
  const settings = readSettings(RunnerSettings, env, { otherErrors: settingsErrors(() => readAgentConfig(env)) })
  const concurrency = settings.RUNNER_CONCURRENCY
  return {
    ...toServiceConfig(settings),
    ...toClientConfig(settings),
    concurrency,
    /** Maximum sessions of one organization at once. */
    perOrganization: Math.max(1, Math.floor((concurrency * settings.RUNNER_ORGANIZATION_SHARE) / 100)),
    /** Decrypt keys of organizations; empty: none is used. */
    secretsKeys: splitList(settings.SECRETS_KEY ?? ''),
    agent: readAgentConfig(env),
  }
}

/** The runner's settings in the form that its code uses. */
export type RunnerConfig = ReturnType<typeof readRunnerConfig> & {
  /** The setting that has the port. Default: `PORT`. */
  readonly portSetting?: string
}
