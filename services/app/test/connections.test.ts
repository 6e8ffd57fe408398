import { expect, test } from '@jest/globals'
import { CONNECTION_ENDS, openUnfinishedRequests, readUntilClosed, waitUntil } from '@workflow-service/testkit'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()
const SIGN_IN = ['POST /app/sign-in HTTP/1.1', 'Host: localhost', 'Sec-Fetch-Site: same-origin']
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n'
/** All that one network may read at once. */
const COUNT = 250

const hasSlotsInUse = async (count: number): Promise<boolean> =>
  (await (await fetch(`${app.metricsUrl}/metrics`)).text()).includes(
    `http_request_slots_in_use{stage="reading",service="app"} ${count}\n`,
  )

test('an idle connection is closed without an answer, whether it was used or not, and half a request gets one', async () => {
  const sent = ['', `${HEALTH}\r\n`, HEALTH]
  const received = await Promise.all(sent.map((text) => readUntilClosed(app.url, text)))
  expect(received.map((text) => text.match(/(?<=HTTP\/1\.1 )\d+/g))).toEqual([null, ['200'], ['400']])
}, 40_000)

test.each(Object.entries(CONNECTION_ENDS))(
  'bodies of strangers that never arrive take no slots any more once their connections are %s',
  async (_how, end) => {
    const connections = await openUnfinishedRequests(app.url, SIGN_IN, COUNT)
    await waitUntil(() => hasSlotsInUse(COUNT))
    expect((await app.call(null, 'signIn', { body: { email: 'a@acme.test', password: 'x' } })).status).toBe(503)
    for (const connection of connections) end(connection)
    await waitUntil(() => hasSlotsInUse(0), { timeoutMs: 30_000 })
    expect((await app.call(null, 'signIn', { body: { email: 'a@acme.test', password: 'x' } })).status).toBe(401)
    for (const { socket } of connections) socket.destroy()
  },
  60_000,
)
