import { LOCAL_HOST, type LocalConfig } from './config.ts'

/** The demo's endpoint listens on loopback, which dispatchers refuse by default. */
const ALLOWED_SUBNETS = '127.0.0.0/8,::1/128'

/** Settings that the services of the local stack share. */
export interface SharedSettings {
  readonly DATABASE_URL: string
  readonly INTERNAL_API_TOKEN: string
  readonly SECRETS_KEY: string
}

/** What the environments depend on besides the settings: the addresses of the other services. */
export interface Addresses {
  readonly dispatcherUrl: string
  readonly gatewayUrl: string
  readonly appPort: number
}

/**
 * Returns the environment of each service: the given settings, and those that the local stack sets itself. AMQP_URL is
 * a required setting; the in-process queue replaces the broker.
 */
export function servicesEnv(config: LocalConfig, { DATABASE_URL, INTERNAL_API_TOKEN, SECRETS_KEY }: SharedSettings) {
  const given = config.servicesEnv
  const shared = {
    // Four services in one process need fewer connections than four processes.
    DATABASE_POOL_SIZE: '10',
    ...given,
    DATABASE_URL,
    HOST: LOCAL_HOST,
    AMQP_URL: 'amqp://in-process',
  }
  return {
    dispatcher: {
      ...shared,
      PORT: '0',
      INTERNAL_API_TOKEN,
      SECRETS_KEY,
      WEBHOOK_ALLOWED_SUBNETS: [ALLOWED_SUBNETS, given['WEBHOOK_ALLOWED_SUBNETS'] ?? ''].join(','),
    },
    runner: (dispatcherUrl: string) => ({
      ...shared,
      PORT: '0',
      INTERNAL_API_TOKEN,
      SECRETS_KEY,
      DISPATCHER_URL: dispatcherUrl,
    }),
    gateway: { ...shared, PORT: String(config.port), METRICS_PORT: '0' },
    app: ({ dispatcherUrl, gatewayUrl, appPort }: Addresses) => ({
      APP_URL: `http://${LOCAL_HOST}:${appPort}`,
      API_URL: gatewayUrl,
      ...shared,
      PORT: String(appPort),
      METRICS_PORT: '0',
      INTERNAL_API_TOKEN,
      DISPATCHER_URL: dispatcherUrl,
    }),
  }
}
