import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { createInProcessQueue } from '@workflow-service/messaging'
import { waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import type { RunningRunner } from '../src/index.ts'
import {
  type AcceptedStart,
  FAST,
  startRunnerFixture,
  type TestOrganization,
  type RunnerFixture,
} from './support/runner-fixture.ts'

let fixture: RunnerFixture
const runners: RunningRunner[] = []
beforeAll(async () => {
  fixture = await startRunnerFixture()
})
afterAll(() => fixture.stop())
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.stop()))
})

/** An agent whose runs end when they are told to. */
function heldAgent() {
  const running = new Map<string, () => void>()
  let most = 0
  const agent: Agent = async ({ run, abort }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    abort.addEventListener('abort', () => resolve())
    running.set(run.id, resolve)
    most = Math.max(most, running.size)
    await promise
    running.delete(run.id)
  }
  return {
    agent,
    running,
    get most() {
      return most
    },
    endAll() {
      for (const end of running.values()) end()
    },
  }
}

const startMany = (organization: TestOrganization, count: number, isPublished = true) =>
  Promise.all(Array.from({ length: count }, () => fixture.start(organization, { isPublished })))

async function runAll(agent: ReturnType<typeof heldAgent>, starts: AcceptedStart[]): Promise<void> {
  const ending = setInterval(() => agent.endAll(), 10)
  await fixture.waitForRuns(starts)
  clearInterval(ending)
}

describe('places', () => {
  test('are never exceeded, and are filled again as they become free', async () => {
    const [acme, other] = [await fixture.createOrganization(), await fixture.createOrganization()]
    const held = heldAgent()
    const starts = [...(await startMany(acme, 12)), ...(await startMany(other, 12, false))]
    runners.push(await fixture.startRunner({ agent: held.agent, timing: FAST }, { RUNNER_CONCURRENCY: '6' }))
    await waitUntil(() => held.running.size === 6)
    await runAll(held, starts)
    expect(held.most).toBe(6)
  })

  test('are filled at once when work is known to wait, without waiting for a sweep', async () => {
    const acme = await fixture.createOrganization()
    const held = heldAgent()
    const timing = { ...FAST, sweepMs: 600_000 }
    const env = { RUNNER_CONCURRENCY: '2', RUNNER_ORGANIZATION_SHARE: '50' }
    runners.push(await fixture.startRunner({ agent: held.agent, timing }, env))
    await runAll(held, await startMany(acme, 8))
    expect(held.most).toBe(1)
  })

  test('a full runner leaves the messages to one that has places', async () => {
    const acme = await fixture.createOrganization()
    const [full, idle] = [heldAgent(), heldAgent()]
    const timing = { ...FAST, sweepMs: 600_000, holdMs: 600_000 }
    const env = { RUNNER_CONCURRENCY: '1', RUNNER_ORGANIZATION_SHARE: '100' }
    runners.push(await fixture.startRunner({ agent: full.agent, timing }, env))
    const [first] = await startMany(acme, 1)
    await waitUntil(() => full.running.size === 1)
    runners.push(await fixture.startRunner({ agent: idle.agent, timing }, { ...env, RUNNER_CONCURRENCY: '50' }))
    const others: AcceptedStart[] = []
    for (let n = 0; n < 12; n++) {
      others.push(...(await startMany(acme, 1)))
      await waitUntil(async () => (await fixture.queue.depth()).ready === 0)
    }
    // The full one holds one message. Dropping them at once, it would have had half of them.
    await waitUntil(() => idle.running.size >= 11)
    expect(full.running.size).toBe(1)
    const ending = setInterval(() => {
      full.endAll()
      idle.endAll()
    }, 10)
    await fixture.waitForRuns([first!, ...others])
    clearInterval(ending)
  })
})

describe('fairness', () => {
  test('one organization takes no more than its share, however much it has waiting', async () => {
    const [acme, other] = [await fixture.createOrganization(), await fixture.createOrganization()]
    const held = heldAgent()
    const greedy = await startMany(acme, 30)
    const env = { RUNNER_CONCURRENCY: '10', RUNNER_ORGANIZATION_SHARE: '30' }
    runners.push(await fixture.startRunner({ agent: held.agent, timing: FAST }, env))
    await waitUntil(() => held.running.size === 3)
    const [modest] = await startMany(other, 1)
    await waitUntil(() => held.running.has(modest!.startId))
    expect(held.running.size).toBe(4)
    await runAll(held, [...greedy, modest!])
  })

  test('while one organization has 500 sessions waiting on an endpoint that takes 30 s, the other is served at once', async () => {
    const [slow, quick] = [await fixture.createOrganization(), await fixture.createOrganization()]
    slow.endpoint.answerWith('hang')
    await startMany(slow, 500)
    runners.push(await fixture.startRunner({ timing: { ...FAST, sweepMs: 2_000, leaseMs: 15_000, graceMs: 100 } }))
    await slow.endpoint.waitForRequests(75)
    await fixture.start(quick)
    // The promise is 2 s; without a place kept free it would be the 30 s of the others.
    await quick.endpoint.waitForRequests(1, 10_000)
    expect(slow.endpoint.requests.length).toBeLessThanOrEqual(75)
  }, 60_000)

  test('the backlog of a broker outage is taken in turn too', async () => {
    const [acme, other] = [await fixture.createOrganization(), await fixture.createOrganization()]
    const order: string[] = []
    const agent: Agent = async ({ run }) => void order.push(run.organizationId)
    const greedy = await startMany(acme, 40, false)
    const late = await startMany(other, 4, false)
    const env = { RUNNER_CONCURRENCY: '4', RUNNER_ORGANIZATION_SHARE: '50' }
    runners.push(await fixture.startRunner({ agent, timing: FAST, sessionQueue: createInProcessQueue() }, env))
    await fixture.waitForRuns([...greedy, ...late])
    expect(order.slice(0, 20).filter((id) => id === other.organizationId)).toHaveLength(4)
  })
})
