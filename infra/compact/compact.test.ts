import { expect, test } from '@jest/globals'
import { startCustomerEndpoint, waitUntil } from '../../packages/testkit/src/index.ts'
import { untilAllEnded } from '../trials/shared/callers.ts'
import { createOrganization, createWorkflow, saveSource } from '../trials/shared/customers.ts'
import { queueStarts } from '../trials/shared/seed.ts'
import { startTestSystem } from '../trials/shared/system.ts'

test('runner and dispatcher in one process verify a source, run starts, send nothing twice after a kill, and record a payload before they stop', async () => {
  await using stack = new AsyncDisposableStack()
  const endpoint = stack.adopt(await startCustomerEndpoint(), (server) => server.close())
  const system = stack.use(await startTestSystem({ env: { LOG_LEVEL: 'info' } }))
  const compact = await system.start('compact')
  const organization = await createOrganization(system)
  const source = { name: 'Order intake', endpointUrl: endpoint.url, example: { text: 'example' } }
  const { status } = await saveSource(system, organization, source)
  expect([status, endpoint.requests.length]).toEqual([201, 1])
  const workflowId = await createWorkflow(system, organization, 'Post to Order intake.')

  /** Starts the workflow. Its payload is answered when the returned function is called, if it is sent once. */
  const start = async (): Promise<() => void> => {
    const gate = Promise.withResolvers<{ status: number }>()
    endpoint.requests.length = 0
    endpoint.answerWith(() => gate.promise)
    await queueStarts(system, { ...organization, workflowId }, 1)
    await endpoint.waitForRequests(1, 30_000)
    return () => gate.resolve({ status: 204 })
  }
  const readLastRun = async (): Promise<unknown> => {
    const { rows } = await system.pool.query(
      `SELECT status, attempts, ARRAY (SELECT outcome FROM deliveries WHERE run_id = starts.id) AS outcomes
       FROM starts ORDER BY created_at DESC LIMIT 1`,
    )
    return rows[0]
  }

  const answer = await start()
  answer()
  await untilAllEnded(system)
  expect(await readLastRun()).toEqual({ status: 'succeeded', attempts: 1, outcomes: ['accepted'] })

  const answerTooLate = await start()
  await compact.kill()
  await compact.restart()
  await system.pool.query(`UPDATE deliveries SET created_at = created_at - interval '1 minute'`)
  await untilAllEnded(system)
  answerTooLate()
  expect(endpoint.requests).toHaveLength(1)
  expect(await readLastRun()).toEqual({ status: 'failed', attempts: 2, outcomes: ['unknown'] })

  // Without a broker, the sweep finds the start.
  await system.rabbitMq.stop()
  const answerWhileStopping = await start()
  const { process } = compact
  process.kill('SIGTERM')
  await waitUntil(() => process.stdout.includes('service.stopping'))
  answerWhileStopping()
  expect(await process.exited).toMatchObject({ code: 0 })
  expect(await readLastRun()).toEqual({ status: 'succeeded', attempts: 1, outcomes: ['accepted'] })
})
