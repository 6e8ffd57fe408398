import { readAppConfig } from '@workflow-service/app'
import { readLocalDir } from '@workflow-service/cli/local-folder'
import { Type } from '@workflow-service/contract/type'
import { readDispatcherConfig } from '@workflow-service/dispatcher'
import { readGatewayConfig } from '@workflow-service/gateway'
import { readRunnerConfig } from '@workflow-service/runner'
import { readSettings, SettingsError, settingsErrors, SharedSettings } from '@workflow-service/service-kit'

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

export type LocalConfig = ReturnType<typeof readLocalConfig>

/** @throws SettingsError that names every invalid setting. */
export function readLocalConfig(env: NodeJS.ProcessEnv = process.env) {
  const settings = readSettings(LocalSettings, env)
  return {
    /** The folder of data, settings and logs. */
    localDir: readLocalDir(env),
    /** The port of the public API. */
    port: settings.PORT,
    /** The port of the application; undefined lets `holdAppPort` choose. */
    appPort: settings.APP_PORT,
    logLevel: settings.LOG_LEVEL,
    /** Has the settings of the services, beside their own. */
    env,
    /** Names of settings that the environment has and that are not used. */
    // PORT is a setting of the local stack too.
    unusedSettings: OWN_SETTINGS.filter((name) => name !== 'PORT' && env[name]),
    /** Whether npm started the parent process. If npm is killed, the local stack stops too. */
    isStartedByNpm: env['npm_lifecycle_event'] !== undefined,
  }
}

/** The demo's endpoint listens on loopback, which dispatchers refuse by default. */
const ALLOWED_SUBNETS = '127.0.0.0/8,::1/128'

/** The secrets that the services of the local stack share. */
export interface SharedSecrets {
  readonly INTERNAL_API_TOKEN: string
  readonly SECRETS_KEY: string
}

/** The ports at which the services listen. */
export interface Ports {
  readonly dispatcher: number
  readonly gateway: number
  readonly app: number
}

export const urlOf = (port: number): string => `http://${LOCAL_HOST}:${port}`

/**
 * Returns the environment of each service: the given one, with the settings that the local stack sets itself. Two of
 * them are required and not used: the in-process queue replaces AMQP_URL, and the address of PostgreSQL is known later.
 */
export function servicesEnv({ env }: LocalConfig, { INTERNAL_API_TOKEN, SECRETS_KEY }: SharedSecrets, ports: Ports) {
  const shared = {
    ...env,
    // Four services in one process need fewer connections than four processes.
    DATABASE_POOL_SIZE: env['DATABASE_POOL_SIZE'] || '10',
    DATABASE_URL: 'postgres://later',
    HOST: LOCAL_HOST,
    AMQP_URL: 'amqp://in-process',
    AMQP_QUEUE_TYPE: undefined,
    METRICS_PORT: '0',
    INTERNAL_API_TOKEN,
    SECRETS_KEY,
    DISPATCHER_URL: urlOf(ports.dispatcher),
  }
  const urls = { APP_URL: env['APP_URL'] || urlOf(ports.app), API_URL: env['API_URL'] || urlOf(ports.gateway) }
  const subnets = [ALLOWED_SUBNETS, env['WEBHOOK_ALLOWED_SUBNETS'] ?? ''].join(',')
  return {
    dispatcher: { ...shared, PORT: String(ports.dispatcher), WEBHOOK_ALLOWED_SUBNETS: subnets },
    runner: { ...shared, PORT: '0' },
    gateway: { ...shared, PORT: String(ports.gateway) },
    app: { ...shared, ...urls, PORT: String(ports.app) },
  }
}

/** Reads the settings of all services. @throws SettingsError with every error at once. */
export function readServiceConfigs(config: LocalConfig, secrets: SharedSecrets, ports: Ports) {
  const env = servicesEnv(config, secrets, ports)
  const read = {
    dispatcher: () => readDispatcherConfig(env.dispatcher),
    runner: () => readRunnerConfig(env.runner),
    app: () => readAppConfig(env.app),
    gateway: () => readGatewayConfig(env.gateway),
  }
  const errors = Object.values(read).flatMap(settingsErrors)
  // Services share settings.
  if (errors.length > 0) throw new SettingsError([...new Set(errors)])
  return { dispatcher: read.dispatcher(), runner: read.runner(), app: read.app(), gateway: read.gateway() }
}
