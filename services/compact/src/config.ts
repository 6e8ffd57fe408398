import { type DispatcherConfig, readDispatcherConfig } from '@workflow-service/dispatcher'
import { readRunnerConfig, type RunnerConfig } from '@workflow-service/runner'
import { readSettings, SettingsError, SharedSettings } from '@workflow-service/service-kit'
import { Type } from '@workflow-service/contract/type'

/** The setting beside those of the dispatcher, whose PORT it uses, and of the runner. */
export const CompactSettings = Type.Object({
  RUNNER_PORT: SharedSettings.port({
    default: 8082,
    description:
      'The port of /healthz, /readyz and /metrics of the runner in the compact process; 0 selects a free one.',
  }),
})

/** The settings of both services. */
export interface CompactConfig {
  readonly dispatcher: DispatcherConfig
  readonly runner: RunnerConfig
}

/**
 * Reads the settings of both services from the environment. DISPATCHER_URL is not used.
 * @throws SettingsError with every error at once.
 */
export function readCompactConfig(env: NodeJS.ProcessEnv = process.env): CompactConfig {
  const errors = new Set<string>()
  const read = <Config>(readConfig: () => Config): Config | undefined => {
    try {
      return readConfig()
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      for (const each of error.errors) errors.add(each)
      return undefined
    }
  }
  const settings = read(() => readSettings(CompactSettings, env))
  const dispatcher = read(() => readDispatcherConfig(env))
  const runnerEnv = { ...env, PORT: String(settings?.RUNNER_PORT ?? 0), DISPATCHER_URL: 'http://in-process' }
  const runner = read(() => readRunnerConfig(runnerEnv))
  if (!dispatcher || !runner || errors.size > 0) throw new SettingsError([...errors])
  return { dispatcher, runner }
}
