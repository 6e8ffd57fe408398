import { readLocalDir } from '@workflow-service/cli/local-folder'
import { portSetting, readSettings, SharedSettings } from '@workflow-service/service-kit'
import { Type } from 'typebox'

/** All servers of the local stack listen on loopback only. */
export const LOCAL_HOST = '127.0.0.1'

const LocalSettings = Type.Object({
  PORT: portSetting({ default: 8080, description: 'The port of the public API; 0 selects a free one.' }),
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

/** Environment variables that the services get unchanged. The local stack sets all their other settings itself. */
const PASSED_ON = [
  'LOG_LEVEL',
  'AGENT_MODEL',
  'AGENT_BASE_URL',
  'AGENT_API_KEY',
  'RATE_LIMIT_PER_MINUTE',
  'CORS_ORIGINS',
]

/** The settings of the local stack. */
export interface LocalConfig {
  /** The folder of data, settings and logs. */
  readonly localDir: string
  /** The port of the public API. */
  readonly port: number
  /** The port of the application; undefined lets `chooseAppPort` choose. */
  readonly appPort: number | undefined
  readonly logLevel: string
  /** Settings that the services get unchanged. */
  readonly servicesEnv: NodeJS.ProcessEnv
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
    isStartedByNpm: env['npm_lifecycle_event'] !== undefined,
  }
}
