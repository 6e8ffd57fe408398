import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { connectRabbitMq, type SessionQueue } from '@workflow-service/messaging'
import { type PrivateRabbitMq, startRabbitMq, waitUntil } from '@workflow-service/testkit'
import type { RunningRunner } from '../src/index.ts'
import { FAST, startRunnerFixture, type TestOrganization, type RunnerFixture } from './support/runner-fixture.ts'

let fixture: RunnerFixture
let broker: PrivateRabbitMq
let acme: TestOrganization
let gateway: SessionQueue
let runner: RunningRunner | undefined
beforeAll(async () => {
  fixture = await startRunnerFixture()
  acme = await fixture.createOrganization()
  broker = await startRabbitMq()
  gateway = connect()
}, 180_000)
afterAll(async () => {
  await gateway.close()
  await broker.stop()
  await fixture.stop()
})
afterEach(async () => {
  await runner?.stop()
  runner = undefined
})

const connect = () => connectRabbitMq({ url: broker.url, queueType: 'classic', connectionName: 'test' })

/** A runner that never looks by itself for as long as a test takes: only messages wake it. */
const byMessageAlone = { ...FAST, sweepMs: 600_000 }
const environment = () => ({ AMQP_URL: broker.url, AMQP_QUEUE_TYPE: 'classic' })

async function startAndPublish(): Promise<{ startId: string; sessionId: string }> {
  const start = await fixture.start(acme, { isPublished: false })
  await waitUntil(async () => (await gateway.publish({ session_id: start.sessionId })) === 'confirmed')
  return start
}

const metricsOf = async ({ port }: RunningRunner) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

describe('a runner with RabbitMQ', () => {
  test('takes a session up when its message comes', async () => {
    runner = await fixture.startRunner({ sessionQueue: undefined, timing: byMessageAlone }, environment())
    const start = await startAndPublish()
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
    await waitUntil(async () => (await gateway.depth()).ready === 0)
  })

  test('puts poison aside with a reason, visible as a metric, and goes on', async () => {
    runner = await fixture.startRunner({ sessionQueue: undefined, timing: byMessageAlone }, environment())
    await gateway.publish({ session_id: 'no session id' })
    const start = await startAndPublish()
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
    await waitUntil(async () => (await gateway.depth()).dead === 1)
    expect(await gateway.deadLetters(1)).toMatchObject([{ reason: 'wrong_shape' }])
    const metrics = await metricsOf(runner)
    expect(metrics).toMatch(/^session_queue_dead_letters_total\{reason="wrong_shape",service="runner"\} 1$/m)
    expect(metrics).toMatch(/^session_queue_messages\{queue="dead",service="runner"\} 1$/m)
  })

  test('runs everything by its sweep while the broker is away, and listens to messages again when it is back', async () => {
    const timing = { ...FAST, sweepMs: 500 }
    runner = await fixture.startRunner({ sessionQueue: undefined, timing }, environment())
    await fixture.waitForRuns([await startAndPublish()])
    await broker.kill()
    const unpublished = await Promise.all(Array.from({ length: 20 }, () => fixture.start(acme, { isPublished: false })))
    await fixture.waitForRuns(unpublished)
    expect(await metricsOf(runner)).toMatch(/^runner_broker_up\{role="consumer",service="runner"\} 0$/m)
    await broker.restart()
    await waitUntil(
      async () => (await metricsOf(runner!)).includes('runner_broker_up{role="consumer",service="runner"} 1'),
      {
        timeoutMs: 30_000,
      },
    )
    const start = await startAndPublish()
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
  }, 120_000)

  test('starts and works while the broker is away', async () => {
    await broker.kill()
    runner = await fixture.startRunner({ sessionQueue: undefined, timing: FAST }, environment())
    expect((await fetch(`http://127.0.0.1:${runner.port}/healthz`)).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${runner.port}/readyz`)).status).toBe(503)
    const start = await fixture.start(acme, { isPublished: false })
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
    await broker.restart()
    await waitUntil(async () => (await fetch(`http://127.0.0.1:${runner!.port}/readyz`)).status === 200, {
      timeoutMs: 30_000,
    })
  }, 120_000)
})
