import { expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { callDispatcher } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

test('a notice, a call of a look-up and a test of a webhook source that waited for a slot go to the address that is saved by then', async () => {
  const { endpoint, organizationId, call } = dispatcher
  const [sourceId, testedId, lookupId] = [await dispatcher.saveSource(), newId(), newId()]
  const notices = `/internal/organizations/${organizationId}/notice`
  const lookup = `/internal/organizations/${organizationId}/lookups/${lookupId}`
  const tools = [{ name: 'find', description: 'Finds.', path: '/find', parameters: { type: 'object', properties: {} } }]
  const saveAt = async (path: string): Promise<void> => {
    const url = endpoint.url + path
    await call('PUT', `${notices}-webhook`, { url, signing_secret: null })
    await call('PUT', lookup, { name: 'Customers', kind: 'http', url, tools })
    await dispatcher.saveSource({ name: 'Tested', endpoint_url: url }, 'never', testedId)
  }
  await saveAt('/old')

  const { url } = await dispatcher.startAnother({}, { maxInFlight: 1 })
  const gate = Promise.withResolvers<void>()
  endpoint.reset()
  endpoint.answerWith(async () => {
    await gate.promise
    return { status: 204 }
  })
  const sent = dispatcher.send(newId(), { source_id: sourceId }, url)
  await endpoint.waitForRequests(1)
  const created = { organization_id: organizationId, created_at: new Date().toISOString() }
  const notice = { id: newId(), type: 'notice.test', ...created, text: 'A test', data: {} }
  const waiting = [
    callDispatcher(url, 'POST', `${notices}s`, notice),
    callDispatcher(url, 'POST', `${lookup}/call`, { tool: 'find', arguments: {} }),
    callDispatcher(url, 'POST', `${dispatcher.sourcePath(testedId)}/test`),
  ]
  await waitUntil(async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('deliveries_waiting{service="dispatcher"} 3'),
  )
  await saveAt('/new')
  gate.resolve()
  expect((await Promise.all([sent, ...waiting])).map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(
    endpoint.requests
      .slice(1)
      .map(({ path }) => path)
      .toSorted(),
  ).toEqual(['/new', '/new', '/new/find'])
})
