import { describe, expect, test } from '@jest/globals'
import { settingsErrors } from '@workflow-service/testkit'
import { readGatewayConfig } from './config.ts'

const required = { DATABASE_URL: 'postgres://localhost/x', AMQP_URL: 'amqp://localhost' }
const errorsOf = (env: NodeJS.ProcessEnv) => settingsErrors(() => readGatewayConfig(env)).join('\n')

describe('readGatewayConfig', () => {
  test('fills in the defaults', () => {
    expect(readGatewayConfig(required)).toEqual({
      databaseUrl: 'postgres://localhost/x',
      databasePoolSize: 20,
      amqpUrl: 'amqp://localhost',
      amqpQueueType: 'quorum',
      host: '0.0.0.0',
      port: 8080,
      metricsPort: 9080,
      shutdownDelayMs: 0,
      logLevel: 'info',
      rateLimitPerMinute: 600,
      rateLimitStoreUrl: undefined,
      trustProxy: false,
      corsOrigins: [],
      maxRequestsInFlight: 2_000,
      tracing: { endpoint: null, headers: {}, sampleRatio: 1 },
    })
  })

  test('reports every error at once, including TRUST_PROXY', () => {
    const message = errorsOf({ PORT: 'x', TRUST_PROXY: 'true', CORS_ORIGINS: '*', RATE_LIMIT_PER_MINUTE: '-1' })
    for (const name of ['DATABASE_URL', 'AMQP_URL', 'PORT', 'TRUST_PROXY', 'CORS_ORIGINS', 'RATE_LIMIT_PER_MINUTE']) {
      expect(message).toMatch(new RegExp(`^${name} `, 'm'))
    }
  })

  test.each<[text: string, value: unknown]>([
    ['', false],
    ['false', false],
    ['0', false],
    ['1', 1],
    ['12', 12],
    ['10.0.0.0/8', ['10.0.0.0/8']],
    ['loopback, 10.1.2.3, fd00::/8', ['loopback', '10.1.2.3', 'fd00::/8']],
  ])('reads TRUST_PROXY=%j', (text, value) => {
    expect(readGatewayConfig({ ...required, TRUST_PROXY: text }).trustProxy).toEqual(value)
  })

  test.each(['true', '-1', '1.5', 'everyone', '10.0.0.0/33', '10.0.0'])(
    'refuses TRUST_PROXY=%j with an example',
    (text) => {
      expect(errorsOf({ ...required, TRUST_PROXY: text })).toContain('Example: TRUST_PROXY=')
    },
  )

  test('reads a list of origins', () => {
    const { corsOrigins } = readGatewayConfig({ ...required, CORS_ORIGINS: 'https://a.example, http://localhost:3000' })
    expect(corsOrigins).toEqual(['https://a.example', 'http://localhost:3000'])
  })
})
