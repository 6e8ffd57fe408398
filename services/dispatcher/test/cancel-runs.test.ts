import { expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

const runsPath = (organizationId = dispatcher.organizationId) => `/internal/organizations/${organizationId}/runs`

test('the internal API cancels a run and a queue, each once, as the person of X-Actor', async () => {
  const { workflowId, runIds } = await dispatcher.createRuns(3)
  const actor = JSON.stringify({ user_id: newId(), name: 'Ada', address: null })
  const cancel = (path: string, body?: unknown) => dispatcher.call('POST', path, body, { 'x-actor': actor })
  expect(await cancel(`${runsPath()}/${runIds[1]}/cancel`)).toMatchObject({ status: 204 })
  expect(await cancel(`${runsPath()}/${runIds[1]}/cancel`)).toMatchObject({
    status: 409,
    body: { error: { code: 'run_ended' } },
  })
  const queue = { kind: 'workflow', id: workflowId }
  const { body } = await cancel(`${runsPath()}/cancel-queued`, queue)
  expect(body).toEqual({ cancelled: 2, is_more: false })
  const runs = await dispatcher.db.prisma.start.findMany({ where: { id: { in: runIds } } })
  expect(runs.map(({ status, cancelledByName: by }) => `${status} by ${by}`)).toEqual(Array(3).fill('cancelled by Ada'))
  expect(runs.map(({ notSucceededAt }) => notSucceededAt)).toEqual(runs.map(({ finishedAt }) => finishedAt))
})

test('the internal API cancels nothing of another organization', async () => {
  const { sessionId, runIds } = await dispatcher.createRuns(1)
  const other = runsPath(await dispatcher.createOrganization())
  expect(await dispatcher.call('POST', `${other}/${runIds[0]}/cancel`)).toMatchObject({ status: 404 })
  const { body } = await dispatcher.call('POST', `${other}/cancel-queued`, { kind: 'session', id: sessionId })
  expect(body).toEqual({ cancelled: 0, is_more: false })
})
