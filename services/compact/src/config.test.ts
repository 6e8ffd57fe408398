import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from '@jest/globals'
import { settingsErrors } from '@workflow-service/service-kit'
import { readCompactConfig } from './config.ts'
import { startCompact } from './start-compact.ts'

test('the settings of both services are checked at once', () => {
  const errors = settingsErrors(() => readCompactConfig({ RUNNER_PORT: 'x', DATABASE_URL: 'mysql://x' }))
  for (const name of ['RUNNER_PORT', 'DATABASE_URL', 'AMQP_URL', 'SECRETS_KEY', 'INTERNAL_API_TOKEN']) {
    expect(errors.filter((error) => error.startsWith(`${name} `))).toHaveLength(1)
  }
})

test('a port that is taken is named with its setting', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const config = readCompactConfig({
    DATABASE_URL: 'postgres://127.0.0.1:1/x',
    AMQP_URL: 'amqp://127.0.0.1:1',
    INTERNAL_API_TOKEN: 'x'.repeat(32),
    SECRETS_KEY: Buffer.alloc(32).toString('base64'),
    HOST: '127.0.0.1',
    PORT: '0',
    RUNNER_PORT: String(port),
    LOG_LEVEL: 'silent',
  })
  await expect(startCompact(config)).rejects.toThrow('set another RUNNER_PORT')
  server.close()
})
