import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { settingsErrors } from '@workflow-service/service-kit'
import { readDispatcherConfig } from './config.ts'

const required = {
  DATABASE_URL: 'postgres://user:secret-of-the-database@localhost/workflow',
  INTERNAL_API_TOKEN: 'a'.repeat(32),
  SECRETS_KEY: randomBytes(32).toString('base64'),
}

const errorsOf = (env: NodeJS.ProcessEnv) => settingsErrors(() => readDispatcherConfig(env))

describe('the settings of the dispatcher', () => {
  test('have defaults except for three', () => {
    expect(readDispatcherConfig(required)).toMatchObject({
      host: '0.0.0.0',
      port: 8081,
      shutdownDelayMs: 0,
      logLevel: 'info',
      allowedSubnets: { cidrs: [] },
      egressProxy: null,
      maxInFlight: 1_000,
      maxInFlightPerSource: 100,
      retentionDays: { deliveries: 90, journals: 90, runs: 365, sessions: 365, auditEvents: 730 },
      databasePoolSize: 20,
    })
    expect(errorsOf({})).toHaveLength(3)
  })

  test('accept lists of tokens and keys, for their rotation, networks and a proxy', () => {
    const keys = [required.SECRETS_KEY, randomBytes(32).toString('base64')]
    const tokens = ['b'.repeat(32), 'c'.repeat(40)]
    const config = readDispatcherConfig({
      ...required,
      INTERNAL_API_TOKEN: tokens.join(' , '),
      SECRETS_KEY: keys.join(','),
      WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8,::1/128',
      WEBHOOK_EGRESS_PROXY: 'http://smokescreen:4750',
    })
    expect(config).toMatchObject({
      internalApiTokens: tokens,
      secretsKeys: keys,
      allowedSubnets: { cidrs: ['127.0.0.0/8', '::1/128'] },
      egressProxy: { host: 'smokescreen', port: 4750 },
    })
  })

  test.each([
    ['one short token of two', { INTERNAL_API_TOKEN: `${'a'.repeat(32)},short` }, /^INTERNAL_API_TOKEN must have at/],
    ['a key of another length', { SECRETS_KEY: 'c2hvcnQ=' }, /^SECRETS_KEY must be base64 of exactly 32 bytes/],
    [
      'a network with bits beyond its prefix',
      { WEBHOOK_ALLOWED_SUBNETS: '10.0.0.1/8' },
      /^WEBHOOK_ALLOWED_SUBNETS is not a list of subnets: "10.0.0.1\/8"/,
    ],
    ['an invalid proxy', { WEBHOOK_EGRESS_PROXY: 'socks5://x' }, /^WEBHOOK_EGRESS_PROXY must be the URL/],
    [
      'an audit log of fewer than 30 days',
      { AUDIT_RETENTION_DAYS: '29' },
      /^AUDIT_RETENTION_DAYS must be 0 or at least 30/,
    ],
    ["Node's own proxy switch", { NODE_USE_ENV_PROXY: '1' }, /^NODE_USE_ENV_PROXY .* WEBHOOK_EGRESS_PROXY=/],
    ['the same switch in NODE_OPTIONS', { NODE_OPTIONS: '--use-env-proxy' }, /^NODE_USE_ENV_PROXY/],
    ['TLS without certificate checks', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, /^NODE_TLS_REJECT_UNAUTHORIZED/],
  ])('reject %s with an error that says what to do', (_what, change, words) => {
    expect(errorsOf({ ...required, ...change })).toEqual([expect.stringMatching(words)])
  })

  test('report all errors at once, without secrets', () => {
    const errors = errorsOf({
      DATABASE_URL: 'secret-of-the-database',
      INTERNAL_API_TOKEN: 'secret-token',
      SECRETS_KEY: 'secret-key',
      WEBHOOK_EGRESS_PROXY: 'http://user:secret-password@',
      WEBHOOK_ALLOWED_SUBNETS: 'everything',
      NODE_USE_ENV_PROXY: '1',
    })
    expect(errors).toHaveLength(6)
    expect(errors.join('\n')).not.toMatch(/secret-/)
  })
})
