import { describe, expect, test } from '@jest/globals'
import { Registry } from 'prom-client'
import request from 'supertest'
import { createLogger } from '../logger.ts'
import { createHealthApp } from './health.ts'

describe('/readyz', () => {
  test('does not wait for a dependency that the service can do without', async () => {
    const app = createHealthApp({
      metrics: new Registry(),
      isStopping: () => false,
      checks: { postgres: () => Promise.resolve() },
      optionalChecks: { rabbitmq: () => new Promise(() => {}) },
      timeoutMs: 3_600_000,
      logger: createLogger({ service: 'test', level: 'silent' }),
    })
    const { status, body } = await request(app).get('/readyz')
    expect([status, body]).toEqual([200, { status: 'ok', checks: { postgres: 'ok', rabbitmq: 'failed' } }])
  })

  test('logs why a dependency does not answer, once until it answers again', async () => {
    const lines: string[] = []
    const logger = createLogger({ service: 'test', level: 'info', destination: { write: (line) => lines.push(line) } })
    let failure: Error | undefined = new Error('password authentication failed')
    const app = createHealthApp({
      metrics: new Registry(),
      isStopping: () => false,
      checks: { postgres: () => (failure ? Promise.reject(failure) : Promise.resolve()) },
      logger,
    })
    for (const status of [503, 503]) await request(app).get('/readyz').expect(status)
    failure = undefined
    for (const status of [200, 200]) await request(app).get('/readyz').expect(status)
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { msg: 'dependency.unavailable', dependency: 'postgres', error: { message: 'password authentication failed' } },
      { msg: 'dependency.available', dependency: 'postgres' },
    ])
  })
})
