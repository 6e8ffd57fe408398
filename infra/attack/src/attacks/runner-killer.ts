import { waitUntil } from '@workflow-service/testkit'
import { type Attack, openExpectations } from '../attack.ts'
import type { AttackTarget } from '../attack-target.ts'

const MAX_ATTEMPTS = 5

/** A run whose runner dies in every attempt: it fails after five, and its session goes on. */
export const runnerKiller: Attack = {
  name: 'runner-killer',
  ends: ['runner'],
  checksLatency: false,
  async run(target) {
    const { expect, violations } = openExpectations()
    const { client } = target.environment
    await target.saveSource('Endpoint', { text: 'x' })
    const workflowId = await target.createWorkflow('Send it to "Endpoint".')
    // The delivery stays in flight, so each attempt is still under way when its runner dies.
    target.endpoint.answerWith(({ text }) => (text.includes('deadly') ? 'hang' : { status: 204 }))
    const [deadly = ''] = await target.start(workflowId, ['text: deadly'])
    const next = await startAfter(target, workflowId, deadly)
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      await waitUntil(
        async () => {
          const query = `SELECT 1 FROM starts WHERE id = $1 AND status = 'running' AND attempts = $2`
          return (await client.query(query, [deadly, attempt])).rows.length > 0
        },
        { timeoutMs: 15_000, intervalMs: 10, message: `attempt ${attempt}` },
      )
      const { process } = target.services.runner
      process.kill('SIGKILL')
      await process.exited
      // Instead of waiting 15 s until the dead runner's leases expire.
      await client.query('UPDATE sessions SET lease_until = now() WHERE lease_until IS NOT NULL')
      await target.restartRunner()
    }
    const runs = await target.waitForRuns([deadly, next], 15_000)
    const error = runs.find(({ id }) => id === deadly)?.error ?? 'not failed'
    expect(error.startsWith('too_many_attempts'), `The run is ${error} after ${MAX_ATTEMPTS} attempts.`)
    const status = runs.find(({ id }) => id === next)?.status
    expect(status === 'succeeded', `The next run of the session is ${status ?? 'not done'}.`)
    return { summary: `${MAX_ATTEMPTS} runners killed by one run: ${error}; next run: ${status}`, violations }
  },
}

/** Starts the workflow in the session of another start. */
async function startAfter(target: AttackTarget, workflowId: string, startId: string): Promise<string> {
  const { client } = target.environment
  const { rows } = await client.query<{ session_id: string }>('SELECT session_id FROM starts WHERE id = $1', [startId])
  const response = await fetch(`${target.services.gateway.url}/v1/workflows/${workflowId}/start`, {
    method: 'POST',
    headers: target.headers,
    body: JSON.stringify({ context: 'text: next', session_id: rows[0]?.session_id }),
  })
  return ((await response.json()) as { id: string }).id
}
