import { describe, expect, test } from '@jest/globals'
import { listRuns } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()

/** Gives the workflow an hourly auto-run that is next due at this time. */
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

describe('an auto-run', () => {
  test('that is due is started once by several runners, and reaches the endpoint', async () => {
    const acme = await fixture.createOrganization()
    const dueAt = new Date(Date.now() - 60_000)
    await schedule(acme, dueAt)
    for (let n = 0; n < 3; n++) await fixture.startRunner()
    const [request] = await acme.endpoint.waitForRequests(1)
    expect(request!.json).toEqual({
      message: `Scheduled run\nfrequency: hourly\nscheduled_for: ${dueAt.toISOString()}`,
    })
    await waitUntil(async () => {
      const workflow = await fixture.db.prisma.workflow.findUniqueOrThrow({ where: { id: acme.workflowId } })
      return workflow.autoRunNextAt! > new Date()
    })
    expect(await listRuns(fixture.db, acme.organizationId, { limit: 10 })).toHaveLength(1)
    await waitUntil(() => fixture.logLines.some((line) => line['msg'] === 'auto_run.started'))
  })

  test('that is not due is not started', async () => {
    const [later, now] = [await fixture.createOrganization(), await fixture.createOrganization()]
    await schedule(later, new Date(Date.now() + 1_800_000))
    await fixture.startRunner()
    await schedule(now, new Date())
    await now.endpoint.waitForRequests(1)
    expect(await listRuns(fixture.db, later.organizationId, { limit: 10 })).toEqual([])
  })
})
