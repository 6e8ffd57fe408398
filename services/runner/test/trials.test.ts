import { beforeEach, describe, expect, test } from '@jest/globals'
import type { ToolCallStep, TrialOut } from '@workflow-service/contract'
import { claimTrial, findTrial, finishTrial, newId, recordTrial, releaseTrial } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const payloadsOf = ({ steps }: TrialOut) =>
  steps.flatMap(({ kind, data }) => (kind === 'tool_call' ? [(data as ToolCallStep).delivery?.payload] : []))

const rules = (message: string) => `deliveries: [{ to: Audit log, payload: { message: '${message}' } }]`

describe('a trial', () => {
  const fixture = useRunnerFixture('one process')
  let acme: TestOrganization
  beforeEach(async () => {
    acme = await fixture.createOrganization()
  })

  const viewer = () => ({ organizationId: acme.organizationId, memberId: null })

  /** Tries the text, and resolves to the trial when it has ended. */
  async function tryText(context: string, draft: string | null = null, userId = newId()): Promise<TrialOut> {
    const trial = { id: newId(), workflowId: acme.workflowId, userId }
    expect(await recordTrial(fixture.db, viewer(), { ...trial, sessionId: null, context, rules: draft })).toBe(
      'accepted',
    )
    return await waitUntil(async () => {
      const found = await findTrial(fixture.db, viewer(), trial)
      return found?.finished_at ? found : undefined
    })
  }

  test('has the payloads of the run that would follow, and neither sends nor records one', async () => {
    await fixture.startRunner()
    const trial = await tryText('Total: 5')
    expect(payloadsOf(trial)).toEqual([{ message: 'Total: 5' }])
    expect(trial.error).toBeNull()
    const run = await fixture.start(acme, { context: 'Total: 5' })
    await fixture.waitForRuns([run])
    expect(acme.endpoint.requests.map(({ json }) => json)).toEqual(payloadsOf(trial))
    expect(await fixture.db.prisma.start.count({ where: { organizationId: acme.organizationId } })).toBe(1)
    expect(await fixture.db.prisma.delivery.count({ where: { organizationId: acme.organizationId } })).toBe(1)
  })

  test('follows rules that are not saved, and has the error of a run that would fail', async () => {
    await fixture.startRunner()
    expect(payloadsOf(await tryText('Total: 5', rules('text(fields.total)')))).toEqual([{ message: '5' }])
    const failed = await tryText('Total: 5', rules('text(fields.sum)'))
    expect(failed.error).toMatch(/^rule_failed: rules\.yaml, line 1, .*there is no field "sum"/)
    expect(payloadsOf(failed)).toEqual([])
    expect(acme.endpoint.requests).toEqual([])
  })

  test('replaces the earlier one of the person, and is executed by one process', async () => {
    const person = newId()
    const trial = { workflowId: acme.workflowId, userId: person, sessionId: null, rules: null }
    const [first, second] = [newId(), newId()]
    await recordTrial(fixture.db, viewer(), { ...trial, id: first, context: 'one' })
    await recordTrial(fixture.db, viewer(), { ...trial, id: second, context: 'two' })
    expect(await findTrial(fixture.db, viewer(), { ...trial, id: first })).toBeUndefined()
    const claimed = await Promise.all([claimTrial(fixture.db, 60_000), claimTrial(fixture.db, 60_000)])
    expect(claimed.flatMap((each) => each?.run.context ?? [])).toEqual(['two'])
  })

  test('takes nothing from a process that lost it, as one that was paused did', async () => {
    const trial = { id: newId(), workflowId: acme.workflowId, userId: newId() }
    await recordTrial(fixture.db, viewer(), { ...trial, sessionId: null, context: 'x', rules: null })
    const paused = (await claimTrial(fixture.db, 0))!.run
    const other = (await claimTrial(fixture.db, 60_000))!.run
    await releaseTrial(fixture.db, paused)
    await finishTrial(fixture.db, { ...paused, error: 'timed_out: late', steps: [] })
    expect(await findTrial(fixture.db, viewer(), trial)).toMatchObject({ finished_at: null })
    expect(await claimTrial(fixture.db, 60_000)).toBeUndefined()
    await finishTrial(fixture.db, { ...other, error: null, steps: [] })
    expect(await findTrial(fixture.db, viewer(), trial)).toMatchObject({ error: null, finished_at: expect.any(String) })
  })
})
