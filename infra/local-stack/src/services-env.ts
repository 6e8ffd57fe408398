import { readAppConfig } from '@workflow-service/app'
import { readDispatcherConfig } from '@workflow-service/dispatcher'
import { readGatewayConfig } from '@workflow-service/gateway'
import { readRunnerConfig } from '@workflow-service/runner'
import { SettingsError, settingsErrors } from '@workflow-service/service-kit'
import { LOCAL_HOST, type LocalConfig } from './config.ts'

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
 * Returns the environment of each service: the given settings, and those that the local stack sets itself. Two of them
 * are required and not used: the in-process queue replaces AMQP_URL, and the address of PostgreSQL is known later.
 */
export function servicesEnv(config: LocalConfig, { INTERNAL_API_TOKEN, SECRETS_KEY }: SharedSecrets, ports: Ports) {
  const given = config.servicesEnv
  const shared = {
    // Four services in one process need fewer connections than four processes.
    DATABASE_POOL_SIZE: '10',
    ...given,
    DATABASE_URL: 'postgres://later',
    HOST: LOCAL_HOST,
    AMQP_URL: 'amqp://in-process',
    METRICS_PORT: '0',
    INTERNAL_API_TOKEN,
    SECRETS_KEY,
    DISPATCHER_URL: urlOf(ports.dispatcher),
  }
  const subnets = [ALLOWED_SUBNETS, given['WEBHOOK_ALLOWED_SUBNETS'] ?? ''].join(',')
  return {
    dispatcher: { ...shared, PORT: String(ports.dispatcher), WEBHOOK_ALLOWED_SUBNETS: subnets },
    runner: { ...shared, PORT: '0' },
    gateway: { ...shared, PORT: String(ports.gateway) },
    app: { APP_URL: urlOf(ports.app), API_URL: urlOf(ports.gateway), ...shared, PORT: String(ports.app) },
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
