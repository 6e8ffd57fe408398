import { poolSizeSetting, portSetting, readSettings, SharedSettings, splitList } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import { type EgressProxy, parseEgressProxy } from './outbound/egress-proxy.ts'
import { parseSubnets, type Subnets } from './outbound/parse-subnets.ts'

/** Every setting of the dispatcher. The settings table and `.env.example` are generated from it. */
export const DispatcherSettings = Type.Object({
  DATABASE_URL: SharedSettings.DATABASE_URL,
  INTERNAL_API_TOKEN: SharedSettings.INTERNAL_API_TOKEN,
  SECRETS_KEY: SharedSettings.SECRETS_KEY,
  HOST: SharedSettings.HOST,
  PORT: portSetting({
    default: 8081,
    description: 'The port of the internal API, /healthz, /readyz and /metrics; 0 selects a free one.',
  }),
  SHUTDOWN_DELAY_SECONDS: SharedSettings.SHUTDOWN_DELAY_SECONDS,
  LOG_LEVEL: SharedSettings.LOG_LEVEL,
  WEBHOOK_ALLOWED_SUBNETS: Type.String({
    default: '',
    description:
      'Networks in CIDR form in which endpoints are allowed although they are not public. For development only.',
    examples: ['127.0.0.0/8,::1/128'],
  }),
  WEBHOOK_EGRESS_PROXY: Type.String({
    default: '',
    writeOnly: true,
    description: 'An HTTP CONNECT proxy, such as Smokescreen, for every request to an endpoint.',
    examples: ['http://smokescreen:4750'],
  }),
  MAX_DELIVERIES_IN_FLIGHT: Type.Integer({
    minimum: 1,
    maximum: 20_000,
    default: 1_000,
    description: 'Maximum requests to endpoints in flight, per process.',
    examples: [1000],
  }),
  MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: Type.Integer({
    minimum: 1,
    maximum: 20_000,
    default: 100,
    description: 'Maximum requests to one webhook source in flight, per process.',
    examples: [100],
  }),
  DELIVERY_LOG_RETENTION_DAYS: Type.Integer({
    minimum: 0,
    maximum: 36_500,
    default: 90,
    description: 'Days that the delivery log is kept. 0 keeps it forever.',
    examples: [90],
  }),
  DATABASE_POOL_SIZE: poolSizeSetting({ default: 20 }),
})

/** The settings, parsed. */
export interface DispatcherConfig {
  databaseUrl: string
  databasePoolSize: number
  internalApiTokens: readonly string[]
  /** Base64; the first encrypts. */
  secretsKeys: readonly string[]
  host: string
  port: number
  /** How long a stop serves requests, not ready, before it closes the port. */
  shutdownDelayMs: number
  logLevel: string
  allowedSubnets: Subnets
  egressProxy: EgressProxy | null
  maxInFlight: number
  maxInFlightPerSource: number
  /** 0 keeps the log forever. */
  logRetentionDays: number
}

/**
 * Reads the settings from the environment.
 * @throws SettingsError with every error at once.
 */
export function readDispatcherConfig(env: NodeJS.ProcessEnv = process.env): DispatcherConfig {
  const settings = readSettings(DispatcherSettings, env, {
    parsers: { WEBHOOK_ALLOWED_SUBNETS: parseSubnets, WEBHOOK_EGRESS_PROXY: parseEgressProxy },
    otherErrors: environmentErrors(env, process.execArgv),
  })
  return {
    databaseUrl: settings.DATABASE_URL,
    databasePoolSize: settings.DATABASE_POOL_SIZE,
    internalApiTokens: splitList(settings.INTERNAL_API_TOKEN),
    secretsKeys: splitList(settings.SECRETS_KEY),
    host: settings.HOST,
    port: settings.PORT,
    shutdownDelayMs: settings.SHUTDOWN_DELAY_SECONDS * 1_000,
    logLevel: settings.LOG_LEVEL,
    allowedSubnets: settings.WEBHOOK_ALLOWED_SUBNETS,
    egressProxy: settings.WEBHOOK_EGRESS_PROXY,
    maxInFlight: settings.MAX_DELIVERIES_IN_FLIGHT,
    maxInFlightPerSource: settings.MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE,
    logRetentionDays: settings.DELIVERY_LOG_RETENTION_DAYS,
  }
}

/**
 * Returns an error for each of Node's own switches that would bypass the checks of outbound requests: a proxy from the
 * environment, and TLS without certificate checks.
 */
function environmentErrors(env: NodeJS.ProcessEnv, execArgv: readonly string[]): string[] {
  const errors: string[] = []
  const options = [...execArgv, ...(env['NODE_OPTIONS'] ?? '').split(/\s+/)]
  if (!['', '0', undefined].includes(env['NODE_USE_ENV_PROXY']) || options.includes('--use-env-proxy')) {
    errors.push(
      'NODE_USE_ENV_PROXY (or --use-env-proxy) must not be set for the dispatcher. Unset it, and set WEBHOOK_EGRESS_PROXY for the requests to endpoints. Example: WEBHOOK_EGRESS_PROXY=http://smokescreen:4750',
    )
  }
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    errors.push(
      'NODE_TLS_REJECT_UNAUTHORIZED must not be 0 for the dispatcher: any server could receive the signing secrets. Unset it, and add a private certificate authority with NODE_EXTRA_CA_CERTS. Example: NODE_EXTRA_CA_CERTS=/etc/ssl/ca.pem',
    )
  }
  return errors
}
