import { describe, expect, test } from '@jest/globals'
import { useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()

async function get(path: string): Promise<Response> {
  const { port } = await fixture.startRunner()
  return fetch(`http://127.0.0.1:${port}${path}`)
}

describe("the runner's HTTP server", () => {
  test('answers /healthz and /readyz', async () => {
    expect((await get('/healthz')).status).toBe(200)
    expect(await (await get('/readyz')).json()).toEqual({ status: 'ok', checks: { postgres: 'ok', rabbitmq: 'ok' } })
  })

  test('answers any other path with an error in the common shape', async () => {
    const answer = await get('/v1/workflows')
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'not_found', request_id: expect.any(String) } })
  })

  test('exposes metrics of runs, steps, leases, the backlog and the queue', async () => {
    const { port } = await fixture.startRunner()
    await fixture.waitForRuns([await fixture.start(await fixture.createOrganization())])
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    for (const line of [
      /^runner_runs_total\{outcome="succeeded",service="runner"\} 1$/m,
      /^runner_run_duration_seconds_count\{service="runner",outcome="succeeded"\} 1$/m,
      /^runner_step_duration_seconds_count\{service="runner",kind="tool_result"\} 1$/m,
      /^runner_start_wait_seconds_count\{service="runner"\} 1$/m,
      /^runner_sessions_taken_total\{by="(message|sweep)",service="runner"\} 1$/m,
      /^runner_leases_held\{service="runner"\} \d+$/m,
      /^runner_leases_lost_total\{service="runner"\} 0$/m,
      /^runner_places\{service="runner"\} 100$/m,
      /^sessions_waiting\{service="runner"\} 0$/m,
      /^sessions_waiting_oldest_seconds\{service="runner"\} 0$/m,
      /^session_queue_messages\{queue="ready",service="runner"\} 0$/m,
    ]) {
      expect(metrics).toMatch(line)
    }
  })
})
