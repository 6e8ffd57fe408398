import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { readSettings, SettingsError, SharedSettings, splitList } from '@workflow-service/service-kit'
import type { TProperties } from 'typebox'
import { localEnvFile, readLocalDir } from '../local-folder.ts'
import { Type } from '@workflow-service/contract/type'

const APP_URL = Type.String({
  format: 'http-url',
  description: 'The address of the application as people type it.',
  examples: ['https://workflows.example.com'],
})

/** The settings of `wf`. Each function throws a SettingsError that names every missing or invalid setting. */
export type CliConfig = ReturnType<typeof readCliConfig>

/** They belong to one installation: a command must not combine the database of one with the dispatcher of another. */
const INSTALLATION = ['DISPATCHER_URL', 'INTERNAL_API_TOKEN', 'SECRETS_KEY'] as const

/**
 * Reads the environment if it has DATABASE_URL, else the file `.local/env` that the local stack writes, with the
 * variables that are given in the environment in place of the file's. Without DATABASE_URL, one of `INSTALLATION` that
 * differs from the file's is an error of every setting.
 */
export function readCliConfig(processEnv: NodeJS.ProcessEnv = process.env) {
  const file = localEnvFile(readLocalDir(processEnv))
  const isLocal = !processEnv['DATABASE_URL']?.trim() && existsSync(file)
  const saved = isLocal ? parseEnv(readFileSync(file, 'utf8')) : {}
  const given = Object.fromEntries(Object.entries(processEnv).filter(([, value]) => value?.trim()))
  const env = { ...saved, ...given }
  const otherErrors = INSTALLATION.filter((name) => isLocal && name in given && given[name] !== saved[name]).map(
    (name) => `${name} is not that of ${file}. Set DATABASE_URL too, or unset ${name} to use that file.`,
  )
  const read = <Properties extends TProperties>(properties: Properties) =>
    readSettings(Type.Object(properties), env, { otherErrors })
  const { DATABASE_URL, DISPATCHER_URL, INTERNAL_API_TOKEN, SECRETS_KEY, AMQP_URL, AMQP_QUEUE_TYPE } = SharedSettings
  return {
    /** Whether the settings come from the local stack's file. */
    isLocal,
    databaseUrl: () => read({ DATABASE_URL }).DATABASE_URL,
    dispatcher: () => {
      const settings = read({ DISPATCHER_URL, INTERNAL_API_TOKEN })
      // There are several tokens during a rotation; the dispatcher accepts each of them.
      return { url: settings.DISPATCHER_URL, token: splitList(settings.INTERNAL_API_TOKEN)[0] ?? '' }
    },
    appUrl: () => read({ APP_URL }).APP_URL,
    secretsKeys: () => splitList(read({ SECRETS_KEY }).SECRETS_KEY),
    hasSecretsKey: Boolean(env['SECRETS_KEY']?.trim()),
    /** Whether the dispatcher can be called. */
    hasDispatcher: Boolean(env['DISPATCHER_URL']?.trim() && env['INTERNAL_API_TOKEN']?.trim()),
    queue: () => {
      if (isLocal && !env['AMQP_URL']?.trim()) {
        throw new SettingsError([
          'AMQP_URL is missing. The local stack of npm start does not use RabbitMQ; its queue is in its own process. Example: AMQP_URL=amqp://localhost:5672',
        ])
      }
      const settings = read({ AMQP_URL, AMQP_QUEUE_TYPE })
      return { url: settings.AMQP_URL, queueType: settings.AMQP_QUEUE_TYPE }
    },
  }
}
