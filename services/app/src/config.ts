import { fileURLToPath } from 'node:url'
import { readSettings, SharedSettings, toClientConfig, toServiceConfig } from '@workflow-service/service-kit'
import { type Quotas, quotaSettings } from './quotas.ts'
import { LOOPBACK_NAME } from './require-host.ts'
import { Type } from '@workflow-service/contract/type'

function optionalUrl(description: string, example: string) {
  return Type.Optional(Type.String({ format: 'http-url', description, examples: [example] }))
}

/**
 * The application's settings. The settings table, `.env.example` and docker-compose.yml are made from or checked
 * against it.
 */
export const AppSettings = Type.Object({
  DATABASE_URL: SharedSettings.DATABASE_URL,
  AMQP_URL: SharedSettings.AMQP_URL,
  AMQP_QUEUE_TYPE: SharedSettings.AMQP_QUEUE_TYPE,
  DISPATCHER_URL: SharedSettings.DISPATCHER_URL,
  INTERNAL_API_TOKEN: SharedSettings.INTERNAL_API_TOKEN,
  APP_URL: optionalUrl(
    'The address of the application as people type it: links are made with it, OpenID Connect returns to it, and only its host and loopback are answered.',
    'https://workflows.example.com',
  ),
  API_URL: SharedSettings.API_URL,
  HOST: SharedSettings.HOST,
  PORT: SharedSettings.port({ default: 8083, description: 'The port of the application; 0 selects a free one.' }),
  METRICS_PORT: SharedSettings.port({
    default: 9083,
    description: 'The port of /readyz and /metrics, which must not be public; 0 selects a free one.',
  }),
  SHUTDOWN_DELAY_SECONDS: SharedSettings.SHUTDOWN_DELAY_SECONDS,
  LOG_LEVEL: SharedSettings.LOG_LEVEL,
  RATE_LIMIT_STORE_URL: SharedSettings.RATE_LIMIT_STORE_URL,
  TRUST_PROXY: SharedSettings.TRUST_PROXY,
  OIDC_ISSUER: optionalUrl(
    'The issuer of the OpenID Connect provider; with it, people can sign in there. http is allowed on loopback only.',
    'https://accounts.google.com',
  ),
  OIDC_CLIENT_ID: Type.Optional(
    Type.String({ description: 'The id of the application at the provider.', examples: ['workflow-service'] }),
  ),
  OIDC_CLIENT_SECRET: Type.Optional(
    Type.String({
      writeOnly: true,
      description: 'The secret of the application at the provider.',
      examples: ['the-secret-of-the-client'],
    }),
  ),
  SMTP_URL: Type.Optional(
    Type.String({
      writeOnly: true,
      pattern: '^smtps?://',
      description:
        'The mail server for notices, with user and password: smtps:// for TLS from the start (port 465), smtp:// for STARTTLS (port 587), without which a password is sent on this machine only. Without it, no email is sent.',
      examples: ['smtp://user:password@mail.example.com:587'],
    }),
  ),
  SMTP_FROM: Type.Optional(
    Type.String({
      pattern: '[^\\s<>@]@[^\\s<>@]',
      description: 'The sender of notices.',
      examples: ['Workflows <workflows@example.com>'],
    }),
  ),
  DATABASE_POOL_SIZE: SharedSettings.poolSize({ default: 10 }),
  ...quotaSettings,
  ...SharedSettings.tracing,
})

/** An OpenID Connect provider. */
export interface OidcConfig {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
}

const CONSOLE_FOLDER = fileURLToPath(new URL('../../../packages/console/dist', import.meta.url))

/**
 * Reads the application's configuration from the environment.
 * @throws SettingsError with every error at once.
 */
export function readAppConfig(env: NodeJS.ProcessEnv = process.env) {
  const settings = readSettings(AppSettings, env, {
    otherErrors: [...oidcErrors(env), ...smtpErrors(env)],
    parsers: { APP_URL: parseOrigin, OIDC_ISSUER: parseIssuer, SMTP_URL: parseSmtpUrl },
  })
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = settings
  return {
    ...toServiceConfig(settings),
    ...toClientConfig(settings),
    /** An origin. */
    appUrl: settings.APP_URL,
    apiUrl: settings.API_URL?.replace(/\/+$/, ''),
    metricsPort: settings.METRICS_PORT,
    /** How long a stop serves requests, not ready, before it closes the port. */
    shutdownDelayMs: settings.SHUTDOWN_DELAY_SECONDS * 1_000,
    /** Undefined when each process counts alone. */
    rateLimitStoreUrl: settings.RATE_LIMIT_STORE_URL,
    trustProxy: settings.TRUST_PROXY,
    oidc: issuer && clientId && clientSecret ? ({ issuer, clientId, clientSecret } satisfies OidcConfig) : undefined,
    smtp: settings.SMTP_URL === undefined ? undefined : { url: settings.SMTP_URL, from: settings.SMTP_FROM ?? '' },
    quotas: settings as Quotas,
    /** The folder of the built page. */
    consoleFolder: CONSOLE_FOLDER,
  }
}

/** The application's configuration. */
export type AppConfig = ReturnType<typeof readAppConfig>

/** The page, its cookies and its API are at the root of the host. */
function parseOrigin(text: string): string | undefined {
  const { origin, pathname, search, hash } = new URL(text)
  if (`${pathname}${search}${hash}` === '/') return origin
  throw new Error(
    `must have no path: the application is served at the root of its host (it is ${JSON.stringify(text)})`,
  )
}

function parseIssuer(text: string): string | undefined {
  const { protocol, hostname } = new URL(text)
  if (protocol === 'https:' || LOOPBACK_NAME.test(hostname)) return text
  throw new Error(
    `must be an https URL: over http, anybody on the way could sign in as anybody. Only an issuer on this machine may be on http, for development (it is ${JSON.stringify(text)})`,
  )
}

/** A slash or `#` of a password would end the host. */
function parseSmtpUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  if (!url?.hostname) throw new Error('must have a host; write / and # of a password as %2F and %23')
  return url
}

function smtpErrors({ SMTP_URL: url = '', SMTP_FROM: from = '' }: NodeJS.ProcessEnv): string[] {
  if (url.trim() === '' || from.trim() !== '') return []
  return ['SMTP_FROM is missing: notices need a sender. Example: SMTP_FROM=Workflows <workflows@example.com>']
}

function oidcErrors(env: NodeJS.ProcessEnv): string[] {
  const names = ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET']
  const missing = names.filter((name) => !env[name]?.trim())
  if (missing.length === names.length) return []
  if (!env['APP_URL']?.trim()) missing.push('APP_URL')
  return missing.map((name) => `${name} is missing: sign-in with OpenID Connect needs ${names.join(', ')} and APP_URL.`)
}
