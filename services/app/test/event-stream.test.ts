import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import { afterEach, expect, test } from '@jest/globals'
import { createChangeNotifier } from '@workflow-service/database'
import { close, createCapturedLogger, listen, waitUntil } from '@workflow-service/testkit'
import type { Response } from 'express'
import { createEventStreams, type EventStreams, type StreamOwner } from '../src/event-stream.ts'
import { type TestPerson, useTestApp } from './support/use-app.ts'

const app = useTestApp()
const open: IncomingMessage[] = []
afterEach(() => {
  for (const response of open.splice(0)) response.destroy()
})

/** Opens a stream; `text` grows as it is received. */
async function openStream(person: TestPerson, url = app.url) {
  const headers = { cookie: `__Host-session=${person.token}`, 'sec-fetch-site': 'same-origin' }
  const sent = request(`${url}/app/events`, { headers })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  open.push(response)
  const stream = { status: response.statusCode, headers: response.headers, text: '', hasEnded: false }
  response.setEncoding('utf8').on('data', (chunk: string) => (stream.text += chunk))
  response.once('close', () => (stream.hasEnded = true))
  response.on('error', () => {})
  return stream
}

test('The stream of events sends the topics that changed in the organization, of all processes', async () => {
  const { member, owner, id } = app.organization
  const [mine, alsoMine] = [await openStream(member), await openStream(owner)]
  const others = await openStream((await app.createOrganization()).member)
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }
  expect(mine).toMatchObject({ status: 200, headers })
  await waitUntil(() => app.logLines.some(({ msg }) => msg === 'change_notice.listening'))
  const sender = createChangeNotifier({ db: app.db, onError: () => {} })
  sender.add(id, 'runs', 'sessions')
  await sender.close()
  await waitUntil(() => mine.text.includes('data: {"topics":["runs","sessions"]}\n\n'))
  await waitUntil(() => alsoMine.text.includes('"sessions"'))
  await app.call(member, 'createSession', { body: { id: crypto.randomUUID() } })
  await waitUntil(() => mine.text.endsWith('data: {"topics":["sessions"]}\n\n'))
  expect(others.text).not.toContain('data')
})

test('The stream of events is refused beyond 12 of a person', async () => {
  const { admin } = app.organization
  for (let count = 0; count < 12; count += 1) expect((await openStream(admin)).status).toBe(200)
  expect((await openStream(admin)).status).toBe(429)
  open.pop()
  open.pop()?.destroy()
  await waitUntil(async () => (await openStream(admin)).status === 200)
})

test('The stream of events ends at once when the application stops', async () => {
  const countListening = () => app.logLines.filter(({ msg }) => msg === 'change_notice.listening').length
  await waitUntil(() => countListening() > 0)
  const before = countListening()
  const another = await app.startAnother()
  await waitUntil(() => countListening() > before)
  const stream = await openStream(app.organization.owner, another.url)
  await another.stop()
  await waitUntil(() => stream.hasEnded)
  expect(stream.text).toBe('retry: 3000\n\n')
})

/** Serves streams with other intervals; `openAs` opens one of a person. */
async function withStreams(
  timing: { heartbeatMs?: number; recheckMs?: number },
  work: (openAs: (person: TestPerson) => ReturnType<typeof openStream>, streams: EventStreams) => Promise<void>,
): Promise<void> {
  const { logger } = createCapturedLogger({ service: 'app' })
  const streams = createEventStreams({ db: app.db, databaseUrl: app.config.databaseUrl, logger, ...timing })
  let owner: StreamOwner
  const server = createServer((_req, res) => streams.open(res as Response, owner))
  const url = `http://127.0.0.1:${await listen(server)}`
  const openAs = async (person: TestPerson) => {
    owner = await ownerOf(person)
    return await openStream(person, url)
  }
  try {
    await work(openAs, streams)
  } finally {
    await streams.close()
    await close(server)
  }
}

async function ownerOf({ accountId, userId, organizationId }: TestPerson) {
  const { id } = await app.db.prisma.signIn.findFirstOrThrow({ where: { accountId } })
  return { userId, organizationId, signInId: id }
}

test('An open stream gets a heartbeat, and is cut off when its reader does not read', async () => {
  const { member, id: organizationId } = app.organization
  await withStreams({ heartbeatMs: 20 }, async (openAs, streams) => {
    const stream = await openAs(member)
    await waitUntil(() => stream.text.includes(':\n\n'))
    streams.publish({ organizationId, topics: ['runs'] })
    await waitUntil(() => stream.text.includes('data: {"topics":["runs"]}\n\n'))
    expect(stream.hasEnded).toBe(false)
    open.at(-1)?.pause()
    // More than waits for a connection.
    for (let n = 0; n < 10_000; n += 1) streams.publish({ organizationId, topics: ['runs'] })
    await waitUntil(() => streams.countOf(member) === 0)
  })
})

test.each([
  ['the sign-in ends', `DELETE FROM sign_ins WHERE account_id = $1`],
  ['the person loses the role', `UPDATE users SET role = NULL WHERE account_id = $1`],
  ['the person is deactivated', `UPDATE users SET deactivated_at = now() WHERE account_id = $1`],
  ['the person works in another organization', `UPDATE sign_ins SET organization_id = NULL WHERE account_id = $1`],
])('An open stream ends when %s, and does not count as a use of the sign-in', async (_name, change) => {
  const { member, owner } = await app.createOrganization()
  await app.db.pool.query(`UPDATE sign_ins SET last_seen_at = now() - interval '1 hour'`)
  await withStreams({ recheckMs: 20 }, async (openAs) => {
    const [one, other] = [await openAs(member), await openAs(owner)]
    await app.db.pool.query(change, [member.accountId])
    await waitUntil(() => one.hasEnded)
    expect(other.hasEnded).toBe(false)
    const { lastSeenAt } = await app.db.prisma.signIn.findFirstOrThrow({ where: { accountId: owner.accountId } })
    expect(Date.now() - lastSeenAt.getTime()).toBeGreaterThan(60_000)
  })
})
