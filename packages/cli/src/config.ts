import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readSettings, SettingsError, splitList } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import { localEnvFile, readLocalDir } from './local-folder.ts'

/** Settings of `wf`, with the same names as in the services. Each command reads only those that it needs. */
const Settings = {
  DATABASE_URL: Type.String({
    format: 'postgres-url',
    writeOnly: true,
    description: 'The URL of PostgreSQL.',
    examples: ['postgres://workflow:secret@localhost:5432/workflow'],
  }),
  DISPATCHER_URL: Type.String({
    format: 'http-url',
    description: 'The URL of the dispatcher.',
    examples: ['http://localhost:8081'],
  }),
  INTERNAL_API_TOKEN: Type.String({
    format: 'token-list',
    writeOnly: true,
    description: 'The token of the internal API: the same as the dispatcher has.',
    examples: ['$(openssl rand -hex 32)'],
  }),
  SECRETS_KEY: Type.String({
    format: 'base64-32-list',
    writeOnly: true,
    description: 'Keys that encrypt signing secrets at rest, separated by commas. The first encrypts, all decrypt.',
    examples: ['$(openssl rand -base64 32)'],
  }),
  AMQP_URL: Type.String({
    format: 'amqp-url',
    writeOnly: true,
    description: 'The URL of RabbitMQ.',
    examples: ['amqp://workflow:secret@localhost:5672'],
  }),
  AMQP_QUEUE_TYPE: Type.Unsafe<'quorum' | 'classic'>({
    type: 'string',
    enum: ['quorum', 'classic'],
    default: 'quorum',
    description: 'The type of the queues: the same as the services have.',
    examples: ['quorum'],
  }),
}

const DatabaseSettings = Type.Object({ DATABASE_URL: Settings.DATABASE_URL })
const DispatcherSettings = Type.Object({
  DISPATCHER_URL: Settings.DISPATCHER_URL,
  INTERNAL_API_TOKEN: Settings.INTERNAL_API_TOKEN,
})
const SecretsSettings = Type.Object({ SECRETS_KEY: Settings.SECRETS_KEY })
const QueueSettings = Type.Object({ AMQP_URL: Settings.AMQP_URL, AMQP_QUEUE_TYPE: Settings.AMQP_QUEUE_TYPE })

/** The settings of `wf`. Each function throws a SettingsError that names every missing or invalid setting. */
export interface CliConfig {
  readonly databaseUrl: () => string
  readonly dispatcher: () => { url: string; token: string }
  readonly secretsKeys: () => string[]
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
    secretsKeys: () => splitList(readSettings(SecretsSettings, env).SECRETS_KEY),
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
