import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { newId, recordStart, showRun } from '@workflow-service/database'
import {
  forwardManifest,
  type CustomerEndpoint,
  startCustomerEndpoint,
  startProcess,
  type StartedProcess,
  waitUntil,
} from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
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

describe('runner and dispatcher in one process', () => {
  test('verify a source for the application, run starts, and record the payload under way before they stop (SIGTERM)', async () => {
    const { process, url } = await startCompactProcess()
    await saveSource(url)
    endpoint.requests.length = 0
    const run = await untilEnded(await start('one'))
    expect([run.status, contexts()]).toEqual(['succeeded', ['one']])

    const answer = Promise.withResolvers<{ status: number }>()
    endpoint.requests.length = 0
    endpoint.answerWith(() => answer.promise)
    const startId = await start('two')
    await endpoint.waitForRequests(1)
    process.kill('SIGTERM')
    await waitUntil(() => process.stdout.includes('service.stopping'))
    answer.resolve({ status: 204 })
    expect(await process.exited).toMatchObject({ code: 0 })
    const stopped = await showRun(database.db, startId)
    expect([stopped?.status, stopped?.deliveries.map(({ outcome }) => outcome)]).toEqual(['succeeded', ['accepted']])
  })

  test('are killed with a payload under way: another process goes on, and sends nothing twice', async () => {
    const answer = Promise.withResolvers<{ status: number }>()
    endpoint.requests.length = 0
    endpoint.answerWith((_, index) => (index === 0 ? answer.promise : { status: 204 }))
    const { process } = await startCompactProcess()
    const startId = await start('three')
    await endpoint.waitForRequests(1)
    process.kill('SIGKILL')
    await process.exited
    await startCompactProcess()
    await database.db.pool.query(`UPDATE deliveries SET created_at = created_at - interval '1 minute'`)
    const run = await untilEnded(startId)
    answer.resolve({ status: 204 })
    expect(contexts()).toEqual(['three'])
    expect([run.attempts, run.deliveries.map(({ outcome }) => outcome)]).toEqual([2, ['unknown']])
  }, 60_000)
})

test('the settings of both services are checked at once', () => {
  const errors = (() => {
    try {
      readCompactConfig({ RUNNER_PORT: 'x', DATABASE_URL: 'mysql://x' })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  })()
  for (const name of ['RUNNER_PORT', 'DATABASE_URL', 'AMQP_URL', 'SECRETS_KEY', 'INTERNAL_API_TOKEN']) {
    expect(errors.split(`\n  - ${name} `)).toHaveLength(2)
  }
})
