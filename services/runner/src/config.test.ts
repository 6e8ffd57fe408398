import { describe, expect, test } from '@jest/globals'
import { settingsErrors } from '@workflow-service/service-kit'
import { readRunnerConfig } from './config.ts'

const env = {
  DATABASE_URL: 'postgres://workflow:secret@postgres:5432/workflow',
  AMQP_URL: 'amqp://workflow:secret@rabbitmq:5672',
  DISPATCHER_URL: 'http://dispatcher:8081',
  INTERNAL_API_TOKEN: 'a'.repeat(32),
}

const errorsOf = (given: NodeJS.ProcessEnv) => settingsErrors(() => readRunnerConfig(given))

describe('readRunnerConfig', () => {
  test('needs four settings and has defaults for all others', () => {
    const agent = { defaultModel: 'builtin', models: new Map() }
    const sharing = { concurrency: 100, perOrganization: 75, databasePoolSize: 10 }
    expect(readRunnerConfig(env)).toMatchObject({ ...sharing, agent, tracing: { endpoint: null, sampleRatio: 1 } })
  })

  test('reports all errors at once, and never a secret', () => {
    const wrong = {
      DATABASE_URL: 'mysql://root:hunter2@db',
      AMQP_QUEUE_TYPE: 'stream',
      INTERNAL_API_TOKEN: 'hunter2',
      RUNNER_CONCURRENCY: 'many',
      RUNNER_ORGANIZATION_SHARE: '0',
      AGENT_MODEL: 'gpt',
      OTEL_EXPORTER_OTLP_HEADERS: 'hunter2',
    }
    const errors = errorsOf(wrong)
    const names = [...Object.keys(wrong), 'AMQP_URL', 'DISPATCHER_URL']
    expect(errors.map((error) => error.split(' ', 1).join('')).toSorted()).toEqual(names.toSorted())
    expect(errors.join()).not.toContain('hunter2')
  })

  test('reports what a model requires along with other errors', () => {
    const errors = errorsOf({ ...env, INTERNAL_API_TOKEN: 'short', AGENT_MODEL: 'anthropic:x' })
    expect(errors).toEqual([
      expect.stringMatching(/^AGENT_API_KEY is required for anthropic; .* Example: AGENT_API_KEY=sk-\.{3}$/),
      expect.stringMatching(/^INTERNAL_API_TOKEN must have at least 32 characters/),
    ])
  })

  test.each([
    ['100', '50', 50],
    ['3', '50', 1],
  ])('of %s slots, %s per cent are %i', (concurrency, share, expected) => {
    const settings = { ...env, RUNNER_CONCURRENCY: concurrency, RUNNER_ORGANIZATION_SHARE: share }
    expect(readRunnerConfig(settings).perOrganization).toBe(expected)
  })

  test('uses the first of several INTERNAL_API_TOKENs', () => {
    const settings = { ...env, INTERNAL_API_TOKEN: `${'b'.repeat(32)}, ${'a'.repeat(32)}` }
    expect(readRunnerConfig(settings).internalApiToken).toBe('b'.repeat(32))
  })
})
