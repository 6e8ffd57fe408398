import { readSettings, SharedSettings, splitList, toServiceConfig } from '@workflow-service/service-kit'
import { parseEgressProxy } from './outbound/egress-proxy.ts'
import { parseSubnets } from './outbound/parse-subnets.ts'
import { Type } from '@workflow-service/contract/type'

/** A mistake in a setting must not remove the traces of it. */
const MIN_AUDIT_DAYS = 30

function retentionSetting(days: number, description: string) {
  return Type.Integer({ minimum: 0, maximum: 36_500, default: days, description, examples: [days] })
}

/** Every setting of the dispatcher. The settings table and `.env.example` are generated from it. */
export const DispatcherSettings = Type.Object({
  DATABASE_URL: SharedSettings.DATABASE_URL,
  INTERNAL_API_TOKEN: SharedSettings.INTERNAL_API_TOKEN,
  SECRETS_KEY: SharedSettings.SECRETS_KEY,
  HOST: SharedSettings.HOST,
  PORT: SharedSettings.port({
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
  MAX_WEBHOOK_SOURCES: Type.Integer({
    minimum: 1,
    maximum: 10_000_000,
    default: 500,
    description: 'Maximum webhook sources of an organization. Operators and manifests may exceed it.',
    examples: [500],
  }),
  DELIVERY_LOG_RETENTION_DAYS: retentionSetting(90, 'Days that the delivery log is kept. 0 keeps it forever.'),
  JOURNAL_RETENTION_DAYS: retentionSetting(
    90,
    'Days that the journal of a run is kept after the run has ended. 0 keeps it as long as the run.',
  ),
  RUN_RETENTION_DAYS: retentionSetting(
    365,
    'Days that a run is kept after its end. 0 keeps runs and sessions forever.',
  ),
  SESSION_RETENTION_DAYS: retentionSetting(
    365,
    'Days that a session is kept after its last start, and at least as long as its runs. 0 keeps sessions forever.',
  ),
  AUDIT_RETENTION_DAYS: retentionSetting(
    730,
    `Days that the audit log is kept, at least ${MIN_AUDIT_DAYS}. 0 keeps it forever.`,
  ),
  DATABASE_POOL_SIZE: SharedSettings.poolSize({ default: 20 }),
  ...SharedSettings.tracing,
})

/**
 * Reads the settings from the environment.
 * @throws SettingsError with every error at once.
 */
export function readDispatcherConfig(env: NodeJS.ProcessEnv = process.env) {
  const settings = readSettings(DispatcherSettings, env, {
    parsers: { WEBHOOK_ALLOWED_SUBNETS: parseSubnets, WEBHOOK_EGRESS_PROXY: parseEgressProxy },
    otherErrors: [...environmentErrors(env, process.execArgv), ...auditErrors(env)],
  })
  return {
    ...toServiceConfig(settings),
    /** Each is accepted. */
    internalApiTokens: splitList(settings.INTERNAL_API_TOKEN),
    /** Base64; the first encrypts. */
    secretsKeys: splitList(settings.SECRETS_KEY),
    /** How long a stop serves requests, not ready, before it closes the port. */
    shutdownDelayMs: settings.SHUTDOWN_DELAY_SECONDS * 1_000,
    allowedSubnets: settings.WEBHOOK_ALLOWED_SUBNETS,
    egressProxy: settings.WEBHOOK_EGRESS_PROXY,
    maxInFlight: settings.MAX_DELIVERIES_IN_FLIGHT,
    maxInFlightPerSource: settings.MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE,
    /** Of an organization. */
    maxWebhookSources: settings.MAX_WEBHOOK_SOURCES,
    /** Days after which rows are deleted; 0 keeps them. */
    retentionDays: {
      deliveries: settings.DELIVERY_LOG_RETENTION_DAYS,
      journals: settings.JOURNAL_RETENTION_DAYS,
      runs: settings.RUN_RETENTION_DAYS,
      sessions: settings.SESSION_RETENTION_DAYS,
      auditEvents: settings.AUDIT_RETENTION_DAYS,
    },
  }
}

/** The dispatcher's settings in the form that its code uses. */
export type DispatcherConfig = ReturnType<typeof readDispatcherConfig>

function auditErrors({ AUDIT_RETENTION_DAYS: text = '' }: NodeJS.ProcessEnv): string[] {
  const days = Number(text)
  if (!(days > 0 && days < MIN_AUDIT_DAYS)) return []
  return [
    `AUDIT_RETENTION_DAYS must be 0 or at least ${MIN_AUDIT_DAYS} (it is ${JSON.stringify(text)}). Example: AUDIT_RETENTION_DAYS=730`,
  ]
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
