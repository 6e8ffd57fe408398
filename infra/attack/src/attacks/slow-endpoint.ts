import { type Attack, openExpectations, tally } from '../attack.ts'

const SESSIONS = 170
const ANSWER_MS = 3_000

/** More payloads at once than one source may have in flight: they wait, and none fails. */
export const slowEndpoint: Attack = {
  name: 'slow-endpoint',
  services: {
    dispatcher: { env: { MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: '50' } },
    runner: { env: { RUNNER_CONCURRENCY: '300' } },
  },
  async run(target) {
    const { expect, violations } = openExpectations()
    await target.saveSource('Slow', { text: 'x' })
    const workflowId = await target.createWorkflow('Send it to "Slow".')
    target.endpoint.answerWith({ status: 204, delayMs: ANSWER_MS })
    const ids = await target.start(workflowId, Array<string>(SESSIONS).fill('text: slow'))
    const runs = await target.waitForRuns(ids, 30_000)
    const statuses = runs.map(({ status, error }) => error ?? status)
    expect(
      statuses.filter((status) => status === 'succeeded').length === SESSIONS,
      `Of ${SESSIONS} runs: ${tally(statuses)}.`,
    )
    return { summary: `${SESSIONS} sessions at once to an endpoint that takes 3 s: ${tally(statuses)}`, violations }
  },
}
