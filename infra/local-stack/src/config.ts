import { readSettings } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import { readLocalDir } from '@workflow-service/cli/local-folder'

/** Everything of the local stack stays on this machine. */
export const LOCAL_HOST = '127.0.0.1'

const LocalSettings = Type.Object({
  PORT: Type.Integer({
    minimum: 0,
    maximum: 65_535,
    default: 8080,
    description: 'The port of the public API; 0 takes any free one.',
    examples: [8080],
  }),
  LOG_LEVEL: Type.Unsafe<string>({
    type: 'string',
    enum: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    description: 'The least severe log lines to write.',
    examples: ['info'],
  }),
})

/** What of the environment the local stack hands on to the services as it is; everything else it sets itself. */
const HANDED_ON = [
  'LOG_LEVEL',
  'AGENT_MODEL',
  'AGENT_BASE_URL',
  'AGENT_API_KEY',
  'RATE_LIMIT_PER_MINUTE',
  'CORS_ORIGINS',
]

/** What the local stack runs by. */
export interface LocalConfig {
  /** Data, settings and logs. */
  readonly localDir: string
  /** Of the public API. */
  readonly port: number
  readonly logLevel: string
  /** Settings of the services that the user has set. */
  readonly servicesEnv: NodeJS.ProcessEnv
  /** Whether npm stands behind the parent process, which must not be outlived. */
  readonly isStartedByNpm: boolean
}

/** @throws SettingsError with every fault at once. */
export function readLocalConfig(env: NodeJS.ProcessEnv = process.env): LocalConfig {
  const settings = readSettings(LocalSettings, env)
  return {
    localDir: readLocalDir(env),
    port: settings.PORT,
    logLevel: settings.LOG_LEVEL,
    servicesEnv: Object.fromEntries(HANDED_ON.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
    isStartedByNpm: env['npm_lifecycle_event'] !== undefined,
  }
}
