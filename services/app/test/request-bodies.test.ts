import { expect, test } from '@jest/globals'
import type { AppOperation, AppOperationId } from '@workflow-service/contract'
import { APP_OPERATIONS, bodyLimitsOf, isOpen } from '@workflow-service/contract/app'
import { newId } from '@workflow-service/database'
import { openConnection, parseAnswer, waitUntil } from '@workflow-service/testkit'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()

const WITH_BODY = Object.values<AppOperation>(APP_OPERATIONS).filter(({ body }) => body !== undefined)

test.each(WITH_BODY.map((operation) => [operation.id as AppOperationId, bodyLimitsOf(operation)] as const))(
  '%s refuses a body beyond its limits %j, and says the limit',
  async (id, { maxBytes, maxMembers, maxDepth }) => {
    const params = Object.fromEntries(
      [...APP_OPERATIONS[id].path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, newId()]),
    )
    const messageFor = async (body: string): Promise<string> => {
      const { status, error } = await app.call(app.organization.owner, id, { params, body })
      return `${status} ${error.message}`
    }
    expect(await messageFor(`{}${' '.repeat(maxBytes - 1)}`)).toBe(
      `400 The body is larger than ${Math.round(maxBytes / 1024)} KiB.`,
    )
    expect(await messageFor(`{}${' '.repeat(maxBytes - 2)}`)).toMatch(/^422 (?!body)/)
    const members = Array.from({ length: maxMembers + 1 }, () => 1).join()
    expect(await messageFor(`[${members}]`)).toBe(
      `422 body must have at most ${maxMembers.toLocaleString('en')} fields and list items in all.`,
    )
    expect(await messageFor('['.repeat(maxDepth + 1))).toBe(
      `422 body must not nest objects and lists more than ${maxDepth} levels deep.`,
    )
  },
)

test('people who are not signed in send less than others, and only some operations take more', () => {
  const ofStrangers = WITH_BODY.filter(isOpen).map(bodyLimitsOf)
  expect(ofStrangers).toEqual(ofStrangers.map(() => ({ maxBytes: 16 * 1024, maxMembers: 100, maxDepth: 64 })))
  const larger = WITH_BODY.filter(({ bodyLimits }) => bodyLimits).map(({ id }) => id)
  expect(larger).toEqual(['saveWorkflowUsers', 'saveTrigger', 'saveFile', 'saveWebhookSource'])
})

test('a large body of a person who is not signed in is refused before it arrives, and its connection is closed', async () => {
  const connection = await openConnection(app.url)
  connection.write(
    'POST /app/sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n' +
      'Content-Length: 2400000\r\n\r\n{',
  )
  const answer = parseAnswer(await connection.ended)
  expect([answer?.status, answer?.headers['connection']]).toEqual([400, 'close'])
})

test('a person who loses access while the body of a request arrives no longer acts', async () => {
  const { id: organizationId, owner } = await app.createOrganization()
  const admin = await app.createPerson(organizationId, 'admin')
  const body = JSON.stringify({ id: newId(), name: 'Stolen', scopes: ['read'], expires_at: null })
  const connection = await openConnection(app.url)
  connection.write(
    'POST /app/api-keys HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nX-Request-Id: late\r\n' +
      `Cookie: __Host-session=${admin.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      'Connection: close\r\n\r\n',
  )
  connection.write(body.slice(0, 1))
  await waitUntil(async () =>
    (await (await fetch(`${app.metricsUrl}/metrics`)).text()).includes('{stage="reading",service="app"} 1\n'),
  )
  expect((await app.call(owner, 'signUserOut', { params: { user_id: admin.userId } })).status).toBe(204)
  connection.write(body.slice(1))
  expect(parseAnswer(await connection.ended)?.status).toBe(401)
  const keys = await app.db.pool.query('SELECT 1 FROM api_keys WHERE organization_id = $1', [organizationId])
  expect(keys.rows).toEqual([])
})
