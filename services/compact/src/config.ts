import { type DispatcherConfig, readDispatcherConfig } from '@workflow-service/dispatcher'
import { readRunnerConfig, type RunnerConfig } from '@workflow-service/runner'
import { readSettings, SettingsError, settingsErrors, SharedSettings } from '@workflow-service/service-kit'
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
  const read = {
    own: () => readSettings(CompactSettings, env),
    dispatcher: () => readDispatcherConfig(env),
    runner: (port = 0) => readRunnerConfig({ ...env, PORT: String(port), DISPATCHER_URL: 'http://in-process' }),
  }
  // The services share settings.
  const errors = new Set([read.own, read.dispatcher, () => read.runner()].flatMap(settingsErrors))
  if (errors.size > 0) throw new SettingsError([...errors])
  const runner = { ...read.runner(read.own().RUNNER_PORT), portSetting: 'RUNNER_PORT' }
  return { dispatcher: read.dispatcher(), runner }
}
