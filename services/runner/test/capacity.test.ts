import { describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import * as support from './support/runner-fixture.ts'

const fixture = support.useRunnerFixture()

/** An agent whose runs last until `endAll`. */
function createBlockingAgent() {
  const running = new Map<string, () => void>()
  let maxRunning = 0
  const agent: Agent = async ({ run, abort }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    abort.addEventListener('abort', () => resolve())
    running.set(run.id, resolve)
    maxRunning = Math.max(maxRunning, running.size)
    await promise
    running.delete(run.id)
  }
  return {
    agent,
    running,
    get maxRunning() {
      return maxRunning
    },
    endAll() {
      for (const end of running.values()) end()
    },
  }
}

const startMany = (organization: support.TestOrganization, count: number, isPublished = true) =>
  Promise.all(Array.from({ length: count }, () => fixture.start(organization, { isPublished })))

async function endAllRuns(
  agents: ReturnType<typeof createBlockingAgent>[],
  starts: support.AcceptedStart[],
): Promise<void> {
  const timer = setInterval(() => {
    for (const agent of agents) agent.endAll()
  }, 10)
  await fixture.waitForRuns(starts)
  clearInterval(timer)
}

describe('slots', () => {
  test('are never exceeded, and are filled again as they become free', async () => {
    const [acme, other] = [await fixture.createOrganization(), await fixture.createOrganization()]
    const blocking = createBlockingAgent()
    const starts = [...(await startMany(acme, 12)), ...(await startMany(other, 12, false))]
    await fixture.startRunner({ agent: blocking.agent }, { RUNNER_CONCURRENCY: '6' })
    await waitUntil(() => blocking.running.size === 6)
    await endAllRuns([blocking], starts)
    expect(blocking.maxRunning).toBe(6)
  })
})

describe('fairness', () => {
  test('one organization with 150 sessions on a hanging endpoint does not delay another organization', async () => {
    const [slow, quick] = [await fixture.createOrganization(), await fixture.createOrganization()]
    slow.endpoint.answerWith('hang')
    await startMany(slow, 150)
    await fixture.startRunner({ timing: { ...support.FAST_TIMING, sweepMs: 2_000, leaseMs: 15_000, graceMs: 100 } })
    await slow.endpoint.waitForRequests(75)
    await fixture.start(quick)
    // The promise is 2 s; without free slots it would take the 30 s of the slow organization's time-outs.
    await quick.endpoint.waitForRequests(1, 10_000)
    expect(slow.endpoint.requests.length).toBeLessThanOrEqual(75)
  }, 60_000)
})
