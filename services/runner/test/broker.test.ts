import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { connectRabbitMq, type SessionQueue } from '@workflow-service/messaging'
import { createTestBroker, type Proxy, startProxy, type TestBroker, waitUntil } from '@workflow-service/testkit'
import type { RunningService } from '@workflow-service/service-kit'
import {
  type AcceptedStart,
  FAST_TIMING,
  NEVER_MS,
  type TestOrganization,
  useRunnerFixture,
} from './support/runner-fixture.ts'

const fixture = useRunnerFixture()
let broker: TestBroker
/** What the runners see of the broker. */
let proxy: Proxy
let url: string
let acme: TestOrganization
let gatewayQueue: SessionQueue
beforeAll(async () => {
  acme = await fixture.createOrganization()
  broker = await createTestBroker()
  proxy = await startProxy(broker.url)
  url = Object.assign(new URL(broker.url), { port: new URL(proxy.url).port }).href
  gatewayQueue = connectRabbitMq({ url, queueType: 'classic', connectionName: 'test' })
})
afterAll(async () => {
  await gatewayQueue.close()
  await proxy.die()
  await broker.drop()
})

/** Starts a runner that uses the broker. With `sweepMs: NEVER_MS` it acquires sessions only because of messages. */
const startRunner = (sweepMs: number) =>
  fixture.startRunner(
    { sessionQueue: undefined, timing: { ...FAST_TIMING, sweepMs } },
    { AMQP_URL: url, AMQP_QUEUE_TYPE: 'classic' },
  )

const publish = (sessionId: string) =>
  waitUntil(async () => (await gatewayQueue.publish({ session_id: sessionId })) === 'confirmed')

async function startAndPublish(): Promise<AcceptedStart> {
  const start = await fixture.start(acme, { isPublished: false })
  await publish(start.sessionId)
  return start
}

const readMetrics = async ({ port }: RunningService) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

const isConsuming = async (runner: RunningService) =>
  /^runner_broker_up\{role="consumer",service="runner"\} 1$/m.test(await readMetrics(runner))
const statusOf = async ({ port }: RunningService, path: string) =>
  (await fetch(`http://127.0.0.1:${port}${path}`)).status

describe('a runner with RabbitMQ', () => {
  test('acquires a session when a message names it, and dead-letters and counts a message that it cannot read', async () => {
    const runner = await startRunner(NEVER_MS)
    await publish('no session id')
    const start = await startAndPublish()
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
    await waitUntil(async () => {
      const { ready, dead } = await gatewayQueue.depth()
      return ready === 0 && dead === 1
    })
    expect(await gatewayQueue.deadLetters(1)).toMatchObject([{ reason: 'wrong_shape' }])
    const metrics = await readMetrics(runner)
    expect(metrics).toMatch(/^session_queue_dead_letters_total\{reason="wrong_shape",service="runner"\} 1$/m)
    expect(metrics).toMatch(/^session_queue_messages\{queue="dead",service="runner"\} 1$/m)
  })

  test('runs every start by its sweep during an outage of the broker, also if it starts then, and consumes messages again', async () => {
    const sweeping = await startRunner(500)
    const waiting = await startRunner(NEVER_MS)
    await fixture.waitForRuns([await startAndPublish()])
    await proxy.die()
    const startMany = () => Promise.all(Array.from({ length: 20 }, () => fixture.start(acme, { isPublished: false })))
    await fixture.waitForRuns(await startMany())
    expect(await Promise.all([sweeping, waiting].map(isConsuming))).toEqual([false, false])

    await sweeping.stop()
    const late = await startRunner(500)
    expect([await statusOf(late, '/healthz'), await statusOf(late, '/readyz')]).toEqual([200, 503])
    await fixture.waitForRuns(await startMany())
    await proxy.comeBack()
    await waitUntil(async () => (await statusOf(late, '/readyz')) === 200, { timeoutMs: 30_000 })
    for (const runner of [late, waiting]) await waitUntil(async () => await isConsuming(runner), { timeoutMs: 30_000 })
    await late.stop()
    expect(await fixture.waitForRuns([await startAndPublish()])).toMatchObject([{ status: 'succeeded' }])
  })
})
