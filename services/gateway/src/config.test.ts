import { expect, test } from '@jest/globals'
import { settingsErrors } from '@workflow-service/service-kit'
import { readGatewayConfig } from './config.ts'

const required = { DATABASE_URL: 'postgres://localhost/x', AMQP_URL: 'amqp://localhost' }

test('the origins of web pages are a list, and never all', () => {
  const { corsOrigins } = readGatewayConfig({ ...required, CORS_ORIGINS: 'https://a.example, http://localhost:3000' })
  expect(corsOrigins).toEqual(['https://a.example', 'http://localhost:3000'])
  const errors = settingsErrors(() => readGatewayConfig({ ...required, CORS_ORIGINS: '*' }))
  expect(errors.join('\n')).toMatch(/^CORS_ORIGINS /)
})

test.each([
  [undefined, false],
  ['12', 12],
  ['loopback, 10.1.2.3', ['loopback', '10.1.2.3']],
])('TRUST_PROXY=%j is %j', (text, value) => {
  expect(readGatewayConfig({ ...required, TRUST_PROXY: text }).trustProxy).toEqual(value)
})
