import { AppSettings } from '@workflow-service/app'
import { readLocalDir } from '@workflow-service/cli/local-folder'
import { DispatcherSettings } from '@workflow-service/dispatcher'
import { GatewaySettings } from '@workflow-service/gateway'
import { RunnerSettings } from '@workflow-service/runner'
import { readSettings, SharedSettings } from '@workflow-service/service-kit'
import { Type } from '@workflow-service/contract/type'

/** All servers of the local stack listen on loopback only. */
export const LOCAL_HOST = '127.0.0.1'

const LocalSettings = Type.Object({
  PORT: SharedSettings.port({ default: 8080, description: 'The port of the public API; 0 selects a free one.' }),
  APP_PORT: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65_535,
      description: 'The port of the application; without it, 8083 or, if that is taken, a free one.',
      examples: [8083],
    }),
  ),
  LOG_LEVEL: SharedSettings.LOG_LEVEL,
})

/** Settings that the local stack gives the services itself; those of the environment are not used. */
export const OWN_SETTINGS = [
  'DATABASE_URL',
  'AMQP_URL',
  'AMQP_QUEUE_TYPE',
  'DISPATCHER_URL',
  'INTERNAL_API_TOKEN',
  'SECRETS_KEY',
  'HOST',
  'PORT',
  'METRICS_PORT',
] as const

const SCHEMAS = [DispatcherSettings, RunnerSettings, GatewaySettings, AppSettings]

/** Every setting of the services that the local stack does not set itself. */
export const PASSED_ON: readonly string[] = [
  ...new Set(SCHEMAS.flatMap(({ properties }) => Object.keys(properties))),
].filter((name) => !(OWN_SETTINGS as readonly string[]).includes(name))

/** The settings of the local stack. */
export interface LocalConfig {
  /** The folder of data, settings and logs. */
  readonly localDir: string
  /** The port of the public API. */
  readonly port: number
  /** The port of the application; undefined lets `chooseAppPort` choose. */
  readonly appPort: number | undefined
  readonly logLevel: string
  /** Settings of the services that the environment has. */
  readonly servicesEnv: NodeJS.ProcessEnv
  /** Names of settings that the environment has and that are not used. */
  readonly unusedSettings: readonly string[]
  /** Whether npm started the parent process. If npm is killed, the local stack stops too. */
  readonly isStartedByNpm: boolean
}

/** @throws SettingsError that names every invalid setting. */
export function readLocalConfig(env: NodeJS.ProcessEnv = process.env): LocalConfig {
  const settings = readSettings(LocalSettings, env)
  return {
    localDir: readLocalDir(env),
    port: settings.PORT,
    appPort: settings.APP_PORT,
    logLevel: settings.LOG_LEVEL,
    servicesEnv: Object.fromEntries(PASSED_ON.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
    // PORT is a setting of the local stack too.
    unusedSettings: OWN_SETTINGS.filter((name) => name !== 'PORT' && env[name]),
    isStartedByNpm: env['npm_lifecycle_event'] !== undefined,
  }
}
