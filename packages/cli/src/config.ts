import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readSettings, SettingsError, splitList } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import { localEnvFile, readLocalDir } from './local-folder.ts'

/** What `wf` may need of the environment, with the services' own names (design 4). Each command reads what it needs. */
const Settings = {
  DATABASE_URL: Type.String({
    format: 'postgres-url',
    writeOnly: true,
    description: 'The URL of PostgreSQL.',
    examples: ['postgres://workflow:secret@localhost:5432/workflow'],
  }),
  DISPATCHER_URL: Type.String({
    format: 'http-url',
    description: 'Where the dispatcher listens.',
    examples: ['http://localhost:8081'],
  }),
  INTERNAL_API_TOKEN: Type.String({
    format: 'token-list',
    writeOnly: true,
    description: 'What is shown to the dispatcher: the token that it was started with.',
    examples: ['$(openssl rand -hex 32)'],
  }),
  SECRETS_KEY: Type.String({
    format: 'base64-32-list',
    writeOnly: true,
    description: 'Keys for the signing secrets at rest, separated by commas: the first encrypts, all decrypt.',
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
    description: "The queues' type, as the services have it.",
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

/** The settings of `wf`, and where they come from. */
export interface CliConfig {
  readonly databaseUrl: () => string
  readonly dispatcher: () => { url: string; token: string }
  readonly secretsKeys: () => string[]
  readonly queue: () => { url: string; queueType: 'quorum' | 'classic' }
  /** Whether the settings are the local stack's, found because the environment has no DATABASE_URL. */
  readonly isLocal: boolean
}

/**
 * The environment, or, where it has no DATABASE_URL, what the local stack has left in `.local/env`: never a mix of both
 * databases. Each part throws a SettingsError that names every setting it misses, with an example.
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
      // While tokens are changed there are several, and the dispatcher takes any of them.
      return { url: settings.DISPATCHER_URL, token: splitList(settings.INTERNAL_API_TOKEN)[0] ?? '' }
    },
    secretsKeys: () => splitList(readSettings(SecretsSettings, env).SECRETS_KEY),
    queue: () => {
      if (isLocal) {
        throw new SettingsError([
          'AMQP_URL is missing. The local stack of npm start needs no RabbitMQ: it queues in its own process. Example: AMQP_URL=amqp://localhost:5672',
        ])
      }
      const settings = readSettings(QueueSettings, env)
      return { url: settings.AMQP_URL, queueType: settings.AMQP_QUEUE_TYPE }
    },
  }
}
