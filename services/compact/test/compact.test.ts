import { randomBytes } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { newId, recordStart, showRun } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { settingsErrors } from '@workflow-service/service-kit'
import { createCapturedLogger, forwardManifest, startCustomerEndpoint } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { readCompactConfig, startCompact } from '../src/index.ts'

const database = useTestDatabase({ maxConnections: 5 })

// Kills under load, and what they must not do, are a trial's: infra/trials/trials.test.ts.
test('runner and dispatcher in one process verify a source, and record the payload under way before they stop', async () => {
  const [organizationId, startId] = [newId(), newId()]
  const token = randomBytes(24).toString('hex')
  const { promise: answered, resolve: answer } = Promise.withResolvers<{ status: number }>()
  const endpoint = await startCustomerEndpoint({
    answer: (_request, index) => (index === 0 ? { status: 204 } : answered),
  })
  const manifest = toManifest(forwardManifest(organizationId, { description: 'Post it to Order intake.' }))
  const [applied] = await applyManifests(database.db, [manifest])
  const { logger } = createCapturedLogger()
  const config = readCompactConfig({
    DATABASE_URL: database.url,
    // Without a broker, the sweep finds the starts.
    AMQP_URL: 'amqp://127.0.0.1:1',
    INTERNAL_API_TOKEN: token,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    HOST: '127.0.0.1',
    PORT: '0',
    RUNNER_PORT: '0',
  })
  const compact = await startCompact(config, { dispatcher: { logger }, runner: { logger } })
  const saved = await fetch(`${compact.url}/internal/organizations/${organizationId}/webhook-sources/${newId()}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'Order intake',
      description: 'Accepts any message.',
      endpoint_url: endpoint.url,
      example_request_body: { message: 'text' },
    }),
  })
  expect([saved.status, await saved.text()]).toEqual([201, expect.any(String)])
  const { id: apiKeyId } = await database.db.prisma.apiKey.findFirstOrThrow({ where: { organizationId } })
  await recordStart(database.db, organizationId, {
    startId,
    workflowId: applied!.workflows[0]!.id,
    sessionId: null,
    newSessionId: newId(),
    context: 'message: one',
    apiKeyId,
    requestId: newId(),
    idempotency: null,
  })
  await endpoint.waitForRequests(2)
  const stopped = compact.stop()
  answer({ status: 204 })
  await stopped
  await endpoint.close()
  const recorded = await showRun(database.db, startId)
  expect([recorded?.status, recorded?.deliveries.map(({ outcome }) => outcome)]).toEqual(['succeeded', ['accepted']])
}, 60_000)

test('the settings of both services are checked at once', () => {
  const errors = settingsErrors(() => readCompactConfig({ RUNNER_PORT: 'x', DATABASE_URL: 'mysql://x' }))
  for (const name of ['RUNNER_PORT', 'DATABASE_URL', 'AMQP_URL', 'SECRETS_KEY', 'INTERNAL_API_TOKEN']) {
    expect(errors.filter((error) => error.startsWith(`${name} `))).toHaveLength(1)
  }
})
