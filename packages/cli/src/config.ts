import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readSettings, SettingsError, SharedSettings, splitList } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import { localEnvFile, readLocalDir } from './local-folder.ts'

/** The settings of `wf` are those of the services. Each command reads only the group that it needs. */
const DatabaseSettings = Type.Object({ DATABASE_URL: SharedSettings.DATABASE_URL })
const DispatcherSettings = Type.Object({
  DISPATCHER_URL: SharedSettings.DISPATCHER_URL,
  INTERNAL_API_TOKEN: SharedSettings.INTERNAL_API_TOKEN,
})
const AppUrlSettings = Type.Object({
  APP_URL: Type.String({
    format: 'http-url',
    description: 'The address of the application as people type it.',
    examples: ['https://workflows.example.com'],
  }),
})
const SecretsSettings = Type.Object({ SECRETS_KEY: SharedSettings.SECRETS_KEY })
const QueueSettings = Type.Object({
  AMQP_URL: SharedSettings.AMQP_URL,
  AMQP_QUEUE_TYPE: SharedSettings.AMQP_QUEUE_TYPE,
})

/** The settings of `wf`. Each function throws a SettingsError that names every missing or invalid setting. */
export interface CliConfig {
  readonly databaseUrl: () => string
  readonly dispatcher: () => { url: string; token: string }
  readonly appUrl: () => string
  readonly secretsKeys: () => string[]
  readonly hasSecretsKey: boolean
  readonly queue: () => { url: string; queueType: 'quorum' | 'classic' }
  /** Whether the settings come from the local stack's file. */
  readonly isLocal: boolean
}

/**
 * Reads the environment if it has DATABASE_URL, else the file `.local/env` that the local stack writes. The two are never
 * mixed: a command must not combine the database of one installation with the dispatcher of another.
 */
export function readCliConfig(processEnv: NodeJS.ProcessEnv = process.env): CliConfig {
  const file = localEnvFile(readLocalDir(processEnv))
  const isLocal = !processEnv['DATABASE_URL']?.trim() && existsSync(file)
  const env = isLocal ? { ...processEnv, ...parseEnv(readFileSync(file, 'utf8')) } : processEnv
  return {
    isLocal,
    databaseUrl: () => readSettings(DatabaseSettings, env).DATABASE_URL,
    dispatcher: () => {
      const settings = readSettings(DispatcherSettings, env)
      // There are several tokens during a rotation; the dispatcher accepts each of them.
      return { url: settings.DISPATCHER_URL, token: splitList(settings.INTERNAL_API_TOKEN)[0] ?? '' }
    },
    appUrl: () => readSettings(AppUrlSettings, env).APP_URL,
    secretsKeys: () => splitList(readSettings(SecretsSettings, env).SECRETS_KEY),
    hasSecretsKey: Boolean(env['SECRETS_KEY']?.trim()),
    queue: () => {
      if (isLocal) {
        throw new SettingsError([
          'AMQP_URL is missing. The local stack of npm start does not use RabbitMQ; its queue is in its own process. Example: AMQP_URL=amqp://localhost:5672',
        ])
      }
      const settings = readSettings(QueueSettings, env)
      return { url: settings.AMQP_URL, queueType: settings.AMQP_QUEUE_TYPE }
    },
  }
}
