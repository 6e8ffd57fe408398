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

export type LocalConfig = ReturnType<typeof readLocalConfig>

/** @throws SettingsError that names every invalid setting. */
export function readLocalConfig(env: NodeJS.ProcessEnv = process.env) {
  const settings = readSettings(LocalSettings, env)
  return {
    /** The folder of data, settings and logs. */
    localDir: readLocalDir(env),
    /** The port of the public API. */
    port: settings.PORT,
    /** The port of the application; undefined lets `chooseAppPort` choose. */
    appPort: settings.APP_PORT,
    logLevel: settings.LOG_LEVEL,
    /** Settings of the services that the environment has. */
    servicesEnv: Object.fromEntries(PASSED_ON.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
    /** Names of settings that the environment has and that are not used. */
    // PORT is a setting of the local stack too.
    unusedSettings: OWN_SETTINGS.filter((name) => name !== 'PORT' && env[name]),
    /** Whether npm started the parent process. If npm is killed, the local stack stops too. */
    isStartedByNpm: env['npm_lifecycle_event'] !== undefined,
  }
}
