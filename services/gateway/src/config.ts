import { readSettings, SharedSettings, splitList, toServiceConfig } from '@workflow-service/service-kit'
import { Type } from '@workflow-service/contract/type'

/**
 * The gateway's settings. The settings table, `.env.example` and docker-compose.yml are made from or checked against
 * it.
 */
export const GatewaySettings = Type.Object({
  DATABASE_URL: SharedSettings.DATABASE_URL,
  AMQP_URL: SharedSettings.AMQP_URL,
  AMQP_QUEUE_TYPE: SharedSettings.AMQP_QUEUE_TYPE,
  HOST: SharedSettings.HOST,
  PORT: SharedSettings.port({ default: 8080, description: 'The port of the public API; 0 selects a free one.' }),
  METRICS_PORT: SharedSettings.port({
    default: 9080,
    description: 'The port of /readyz and /metrics, which must not be public; 0 selects a free one.',
  }),
  SHUTDOWN_DELAY_SECONDS: SharedSettings.SHUTDOWN_DELAY_SECONDS,
  LOG_LEVEL: SharedSettings.LOG_LEVEL,
  API_URL: SharedSettings.API_URL,
  RATE_LIMIT_PER_MINUTE: Type.Integer({
    minimum: 0,
    maximum: 10_000_000,
    default: 600,
    description:
      'Requests per minute of one API key, and failed authentications per minute of one address; 0 is no limit.',
    examples: [600],
  }),
  RATE_LIMIT_STORE_URL: SharedSettings.RATE_LIMIT_STORE_URL,
  TRUST_PROXY: SharedSettings.TRUST_PROXY,
  CORS_ORIGINS: Type.String({
    format: 'origin-list',
    default: '',
    description: 'Origins of web pages that may call the API from a browser, separated by commas.',
    examples: ['https://app.example.com'],
  }),
  MAX_REQUESTS_IN_FLIGHT: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 2_000,
    description:
      'Requests that a process handles at once, and bodies that it reads at once; one organization may have half. Further ones are answered 503.',
    examples: [2000],
  }),
  DATABASE_POOL_SIZE: SharedSettings.poolSize({ default: 20 }),
  ...SharedSettings.tracing,
})

/**
 * Reads the gateway's configuration from the environment.
 * @throws SettingsError with every error at once.
 */
export function readGatewayConfig(env: NodeJS.ProcessEnv = process.env) {
  const settings = readSettings(GatewaySettings, env, {})
  return {
    ...toServiceConfig(settings),
    /** Not used when `ServiceOverrides.sessionQueue` is given. */
    amqpUrl: settings.AMQP_URL,
    amqpQueueType: settings.AMQP_QUEUE_TYPE,
    metricsPort: settings.METRICS_PORT,
    /** How long a stop serves requests, not ready, before it closes the port. */
    shutdownDelayMs: settings.SHUTDOWN_DELAY_SECONDS * 1_000,
    /** Without a slash at the end. Undefined: the address that the caller uses. */
    apiUrl: settings.API_URL?.replace(/\/+$/, ''),
    /** 0 for no limit. */
    rateLimitPerMinute: settings.RATE_LIMIT_PER_MINUTE,
    /** Undefined when each gateway counts alone. */
    rateLimitStoreUrl: settings.RATE_LIMIT_STORE_URL,
    trustProxy: settings.TRUST_PROXY,
    corsOrigins: splitList(settings.CORS_ORIGINS),
    maxRequestsInFlight: settings.MAX_REQUESTS_IN_FLIGHT,
  }
}

export type GatewayConfig = ReturnType<typeof readGatewayConfig>
