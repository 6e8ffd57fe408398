import { expect, test } from '@jest/globals'
import { settingsErrors } from '@workflow-service/service-kit'
import { readCompactConfig } from './config.ts'

test('the settings of both services are checked at once', () => {
  const errors = settingsErrors(() => readCompactConfig({ RUNNER_PORT: 'x', DATABASE_URL: 'mysql://x' }))
  for (const name of ['RUNNER_PORT', 'DATABASE_URL', 'AMQP_URL', 'SECRETS_KEY', 'INTERNAL_API_TOKEN']) {
    expect(errors.filter((error) => error.startsWith(`${name} `))).toHaveLength(1)
  }
})
