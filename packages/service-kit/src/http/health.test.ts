import { describe, expect, test } from '@jest/globals'
import { Registry } from 'prom-client'
import request from 'supertest'
import { createLogger } from '../logger.ts'
import { createHealthApp } from './health.ts'

describe('/readyz', () => {
  test('does not wait for a dependency that the service can do without', async () => {
    const app = createHealthApp(
      {
        metrics: new Registry(),
        isStopping: () => false,
        checks: { postgres: () => Promise.resolve() },
        optionalChecks: { rabbitmq: () => new Promise(() => {}) },
        timeoutMs: 3_600_000,
      },
      createLogger({ service: 'test', level: 'error' }),
    )
    const { status, body } = await request(app).get('/readyz')
    expect([status, body]).toEqual([200, { status: 'ok', checks: { postgres: 'ok', rabbitmq: 'failed' } }])
  })
})
