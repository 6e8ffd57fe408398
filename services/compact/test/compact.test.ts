import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { newId, recordStart, showRun } from '@workflow-service/database'
import {
  type CustomerEndpoint,
  forwardManifest,
  startCustomerEndpoint,
  startProcess,
  type StartedProcess,
  waitUntil,
} from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { settingsErrors } from '@workflow-service/service-kit'
import { readCompactConfig } from '../src/index.ts'

const organizationId = newId()
const token = randomBytes(24).toString('hex')
const processes: StartedProcess[] = []
let endpoint: CustomerEndpoint
let env: Record<string, string>
let workflowId: string
let apiKeyId: string

afterEach(async () => {
  for (const { kill } of processes) kill('SIGKILL')
  await Promise.all(processes.splice(0).map(({ exited }) => exited))
})
afterAll(async () => {
  await endpoint.close()
})
const database = useTestDatabase({ maxConnections: 5 })
beforeAll(async () => {
  endpoint = await startCustomerEndpoint()
  env = {
    DATABASE_URL: database.url,
    // Without a broker, the sweep finds the starts.
    AMQP_URL: 'amqp://127.0.0.1:1',
    INTERNAL_API_TOKEN: token,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    HOST: '127.0.0.1',
    PORT: '0',
    RUNNER_PORT: '0',
  }
  const manifest = toManifest(
    forwardManifest(organizationId, {
      description: 'Post it to Order intake.',
      files: [
        { path: [], name: 'rules.yaml', content: 'deliveries: [{ to: Order intake, payload: { message: context } }]' },
      ],
    }),
  )
  const [applied] = await applyManifests(database.db, [manifest])
  workflowId = applied!.workflows[0]!.id
  apiKeyId = (await database.db.prisma.apiKey.findFirstOrThrow({ where: { organizationId } })).id
}, 120_000)

/** Starts the compact process as its `start` script does. */
async function startCompactProcess(): Promise<{ process: StartedProcess; url: string }> {
  const args = ['--import', '@workflow-service/service-kit/compile-cache', 'src/main.ts']
  const cwd = fileURLToPath(new URL('../', import.meta.url))
  const started = await startProcess({ args, cwd, env, readyWhen: { line: /"service":"runner".*"service\.started"/ } })
  processes.push(started)
  const line = started.jsonLines.find(({ service, msg }) => service === 'dispatcher' && msg === 'service.started')
  return { process: started, url: String(line?.['url']) }
}

async function saveSource(url: string): Promise<void> {
  const path = `/internal/organizations/${organizationId}/webhook-sources/${newId()}`
  const saved = await fetch(url + path, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'Order intake',
      description: 'Accepts any message.',
      endpoint_url: endpoint.url,
      signing_secret: 'correct horse battery staple',
      example_request_body: { message: 'text' },
    }),
  })
  expect([saved.status, await saved.text()]).toEqual([201, expect.any(String)])
}

async function start(context: string): Promise<string> {
  const startId = newId()
  const outcome = await recordStart(database.db, organizationId, {
    startId,
    workflowId,
    sessionId: null,
    newSessionId: newId(),
    context,
    apiKeyId,
    requestId: newId(),
    idempotency: null,
  })
  expect(outcome.kind).toBe('accepted')
  return startId
}

const untilEnded = (startId: string) =>
  waitUntil(
    async () => {
      const run = await showRun(database.db, startId)
      return run?.finished_at ? run : undefined
    },
    { timeoutMs: 30_000 },
  )

const contexts = () => endpoint.requests.map(({ json }) => (json as { message?: string }).message)

/** Delays the answer to the next payload until the returned function is called. */
function delayNextAnswer(): () => void {
  const { promise, resolve } = Promise.withResolvers<{ status: number }>()
  endpoint.requests.length = 0
  endpoint.answerWith((_, index) => (index === 0 ? promise : { status: 204 }))
  return () => resolve({ status: 204 })
}

test('runner and dispatcher in one process verify a source, run starts, send nothing twice after a kill, and record a payload before they stop', async () => {
  const { process: killed, url } = await startCompactProcess()
  await saveSource(url)
  endpoint.requests.length = 0
  expect((await untilEnded(await start('one'))).status).toBe('succeeded')
  expect(contexts()).toEqual(['one'])

  const answer = delayNextAnswer()
  const two = await start('two')
  await endpoint.waitForRequests(1)
  killed.kill('SIGKILL')
  await killed.exited
  const { process: stopped } = await startCompactProcess()
  await database.db.pool.query(`UPDATE deliveries SET created_at = created_at - interval '1 minute'`)
  const resumed = await untilEnded(two)
  answer()
  expect(contexts()).toEqual(['two'])
  expect([resumed.attempts, resumed.deliveries.map(({ outcome }) => outcome)]).toEqual([2, ['unknown']])

  const lateAnswer = delayNextAnswer()
  const three = await start('three')
  await endpoint.waitForRequests(1)
  stopped.kill('SIGTERM')
  await waitUntil(() => stopped.stdout.includes('service.stopping'))
  lateAnswer()
  expect(await stopped.exited).toMatchObject({ code: 0 })
  const recorded = await showRun(database.db, three)
  expect([recorded?.status, recorded?.deliveries.map(({ outcome }) => outcome)]).toEqual(['succeeded', ['accepted']])
}, 60_000)

test('the settings of both services are checked at once', () => {
  const errors = settingsErrors(() => readCompactConfig({ RUNNER_PORT: 'x', DATABASE_URL: 'mysql://x' }))
  for (const name of ['RUNNER_PORT', 'DATABASE_URL', 'AMQP_URL', 'SECRETS_KEY', 'INTERNAL_API_TOKEN']) {
    expect(errors.filter((error) => error.startsWith(`${name} `))).toHaveLength(1)
  }
})
