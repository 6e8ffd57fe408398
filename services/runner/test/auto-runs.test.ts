import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { listRuns } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import type { RunningRunner } from '../src/index.ts'
import { FAST, startRunnerFixture, type TestOrganization, type RunnerFixture } from './support/runner-fixture.ts'

let fixture: RunnerFixture
const runners: RunningRunner[] = []
beforeAll(async () => {
  fixture = await startRunnerFixture()
})
afterAll(() => fixture.stop())
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.stop()))
})

/** Schedules the workflow hourly, due at this time. */
async function schedule({ workflowId }: TestOrganization, dueAt: Date): Promise<void> {
  await fixture.db.prisma.workflow.update({
    where: { id: workflowId },
    data: {
      autoRunEnabled: true,
      autoRunFrequency: 'hourly',
      autoRunAnchorAt: new Date(dueAt.getTime() - 3_600_000),
      autoRunNextAt: dueAt,
    },
  })
}

describe('scheduled runs', () => {
  test('are started once when they are due, by whichever of several runners, and reach the endpoint', async () => {
    const acme = await fixture.createOrganization()
    const dueAt = new Date(Date.now() - 60_000)
    await schedule(acme, dueAt)
    for (let n = 0; n < 3; n++) runners.push(await fixture.startRunner({ timing: FAST }))
    const [request] = await acme.endpoint.waitForRequests(1)
    expect(request!.json).toEqual({
      message: `Scheduled run\nfrequency: hourly\nscheduled_for: ${dueAt.toISOString()}`,
    })
    const moved = async () =>
      (await fixture.db.prisma.workflow.findUniqueOrThrow({ where: { id: acme.workflowId } })).autoRunNextAt
    await waitUntil(async () => (await moved())! > new Date())
    const runs = await listRuns(fixture.db, acme.organizationId, { limit: 10 })
    expect(runs).toHaveLength(1)
    await waitUntil(() => fixture.logLines.some((line) => line['msg'] === 'auto_run.started'))
  })

  test('that lie ahead wait for their time', async () => {
    const [later, now] = [await fixture.createOrganization(), await fixture.createOrganization()]
    await schedule(later, new Date(Date.now() + 1_800_000))
    runners.push(await fixture.startRunner({ timing: FAST }))
    await schedule(now, new Date())
    await now.endpoint.waitForRequests(1)
    expect(await listRuns(fixture.db, later.organizationId, { limit: 10 })).toEqual([])
  })
})
