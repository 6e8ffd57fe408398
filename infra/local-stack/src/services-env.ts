import { LOCAL_HOST, type LocalConfig } from './config.ts'

/** Endpoints on this machine may be sent to, which every other dispatcher refuses. */
const ALLOWED_SUBNETS = '127.0.0.0/8,::1/128'

/** What all services of the local stack share. */
export interface ServiceSecrets {
  readonly DATABASE_URL: string
  readonly INTERNAL_API_TOKEN: string
  readonly SECRETS_KEY: string
}

/** Each service's environment. The broker's URL is asked for, but the queue in this process takes its place. */
export function servicesEnv(config: LocalConfig, { DATABASE_URL, INTERNAL_API_TOKEN, SECRETS_KEY }: ServiceSecrets) {
  const shared = {
    ...config.servicesEnv,
    DATABASE_URL,
    HOST: LOCAL_HOST,
    DATABASE_POOL_SIZE: '10',
    AMQP_URL: 'amqp://in-process',
  }
  return {
    dispatcher: (port: string) => ({
      ...shared,
      PORT: port,
      INTERNAL_API_TOKEN,
      SECRETS_KEY,
      WEBHOOK_ALLOWED_SUBNETS: ALLOWED_SUBNETS,
    }),
    runner: (dispatcherUrl: string) => ({ ...shared, PORT: '0', INTERNAL_API_TOKEN, DISPATCHER_URL: dispatcherUrl }),
    gateway: () => ({ ...shared, PORT: String(config.port), METRICS_PORT: '0' }),
  }
}
