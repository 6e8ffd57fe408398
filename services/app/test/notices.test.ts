import { once } from 'node:events'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { listNoticeOrganizations, newId, recordNotices, takeDueNotices } from '@workflow-service/database'
import { createCapturedLogger, waitUntil } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { SMTPServer } from 'smtp-server'
import type { AppServiceContext } from '../src/app-service-context.ts'
import { makeNotices } from '../src/notices.ts'
import { useDataApp } from './support/data-fixtures.ts'
import type { TestOrganization } from './support/test-app.ts'

const data = useDataApp({ hasMaintenance: false })

/** A mail server that keeps what it gets, or refuses it. */
const mails: string[] = []
const addressees: string[] = []
let isRefusing = false
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  onData(stream, { envelope }, done) {
    addressees.push(...envelope.rcptTo.map(({ address }) => address))
    let text = ''
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    stream.on('end', () => {
      if (isRefusing) return done(Object.assign(new Error('Mailbox full'), { responseCode: 452 }))
      mails.push(text)
      done()
    })
  },
})

let url: string
beforeAll(async () => {
  await once(smtp.listen(0, '127.0.0.1'), 'listening')
  const { port } = smtp.server.address() as { port: number }
  const mail = { url: `smtp://127.0.0.1:${port}`, from: 'Workflows <w@example.com>' }
  const started = await data.app.startAnother({ dispatcherUrl: data.dispatcherUrl, smtp: mail })
  url = started.url
})
afterAll(async () => {
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})

let organization: TestOrganization
beforeEach(async () => {
  mails.length = 0
  addressees.length = 0
  isRefusing = false
  organization = await data.app.createOrganization()
})

const list = async () => (await data.call(organization.admin, 'getNotices', { url })).body.data

describe('Notices', () => {
  test('of failures go to the webhook, signed, and by e-mail to whom chose them, once an hour for a reason', async () => {
    const { db } = data.app
    const { admin, member, id } = organization
    const secret = 'the secret of the notices, long enough'
    const saved = await data.call(admin, 'saveNoticeWebhook', {
      url,
      body: { url: data.endpoint.url, signing_secret: secret },
    })
    expect(saved.body.webhook).toEqual({ url: data.endpoint.url, has_signing_secret: true })
    expect(saved.text).not.toContain(secret)
    // The stored secret goes only where it was entered for.
    const moved = await data.call(admin, 'saveNoticeWebhook', { url, body: { url: 'http://127.0.0.1:9/' } })
    expect([moved.status, moved.error?.details]).toMatchObject([422, [{ field: 'signing_secret', code: 'missing' }]])
    const chosen = await data.call(admin, 'saveMyNotices', { url, body: { kinds: ['failures'] } })
    expect(chosen.body).toEqual({ kinds: ['failures'], has_mail: true })
    await data.call(member, 'saveMyNotices', { url, body: { kinds: ['approvals'] } })
    const sourceId = await data.saveSource({ name: 'Order intake' }, organization)
    for (let n = 0; n < 3; n += 1) await data.addDelivery(sourceId, { outcome: 'rejected' })
    await Promise.all([recordNotices(db, id, true), recordNotices(db, id, true)])
    await data.addDelivery(sourceId, { outcome: 'rejected' })
    await recordNotices(db, id, true)
    await waitUntil(async () => (await list()).every(({ status }) => status === 'sent') || undefined, {
      timeoutMs: 20_000,
    })
    const sent = await list()
    expect(sent.map(({ channel }) => channel).toSorted()).toEqual(['email', 'webhook'])
    expect(mails).toHaveLength(1)
    expect(mails[0]).toContain('Order intake')
    const [request] = data.endpoint.requests
    expect(data.endpoint.requests).toHaveLength(1)
    expect(request!.json).toMatchObject({
      type: 'notice.failures',
      organization_id: id,
      text: expect.stringMatching(/^3 × Order intake/),
      data: { count: 3, id: sourceId, code: 'rejected' },
    })
    const token = await checkServiceToken(request!.headers['x-service-token'], [secret])
    expect(token.ok).toBe(true)
    // An hour later, of what is newer.
    await db.pool.query(`UPDATE notices SET created_at = created_at - interval '61 minutes'`)
    await recordNotices(db, id, true)
    expect(await list()).toHaveLength(4)
    await db.pool.query(`UPDATE notices SET created_at = created_at + interval '10 minutes'`)
    expect(await recordNotices(db, id, true)).toBe(0)
  }, 60_000)

  test('of waiting approvals, paused sources and expiring keys are made once', async () => {
    const { admin, id } = organization
    await data.call(admin, 'saveNoticeWebhook', { url, body: { url: data.endpoint.url } })
    const workflow = await data.createWorkflow('Orders', null, id)
    await data.createApproval(await data.createRun(workflow, { status: 'waiting' }))
    const sourceId = await data.saveSource({ name: 'Billing' }, organization)
    await data.call(admin, 'pauseWebhookSource', { params: { source_id: sourceId } })
    const soon = new Date(Date.now() + 86_400_000).toISOString()
    const key = { id: newId(), name: 'CI', scopes: ['read'], expires_at: soon }
    await data.call(admin, 'createApiKey', { body: key })
    await recordNotices(data.app.db, id, true)
    await recordNotices(data.app.db, id, true)
    expect((await list()).map(({ text }) => text).toSorted()).toEqual([
      '1 payload waits for approval, the first to Order intake',
      expect.stringMatching(/^Billing was paused by /),
      expect.stringMatching(/^The API key CI expires on /),
    ])
  })

  test('of a suspended organization are neither made nor sent, and a test says so', async () => {
    const { db } = data.app
    const { admin, id } = organization
    await data.call(admin, 'saveNoticeWebhook', { url, body: { url: data.endpoint.url } })
    expect(await listNoticeOrganizations(db, true)).toContain(id)
    await db.prisma.organization.update({ where: { id }, data: { isSuspended: true } })
    expect(await listNoticeOrganizations(db, true)).not.toContain(id)
    const { body } = await data.call(admin, 'testNoticeWebhook', { url })
    expect(body).toEqual({ error: 'The organization is suspended.' })
    await db.pool.query('UPDATE notices SET next_at = now() WHERE organization_id = $1', [id])
    await takeDueNotices(db, 100, true)
    expect(await list()).toMatchObject([{ status: 'waiting', attempts: 1 }])
    expect(data.endpoint.requests).toEqual([])
  })

  test('of one organization are made although those of another fail, and go to one address', async () => {
    const { db, config } = data.app
    const other = await data.app.createOrganization()
    for (const each of [organization, other]) {
      await data.call(each.admin, 'saveNoticeWebhook', { url, body: { url: data.endpoint.url } })
      const key = {
        id: newId(),
        name: 'CI',
        scopes: ['read'],
        expires_at: new Date(Date.now() + 86_400_000).toISOString(),
      }
      await data.call(each.admin, 'createApiKey', { body: key })
    }
    await db.pool.query(
      `ALTER TABLE notices ADD CONSTRAINT broken CHECK (organization_id <> '${organization.id}') NOT VALID`,
    )
    const { logger, lines } = createCapturedLogger({ service: 'app' })
    const ctx = { config, db, logger } as unknown as AppServiceContext
    await makeNotices(ctx, new AbortController().signal)
    await db.pool.query('ALTER TABLE notices DROP CONSTRAINT broken')
    expect(lines).toMatchObject([{ msg: 'notice.not_made', organization_id: organization.id }])
    expect((await data.call(other.admin, 'getNotices', { url })).body.data).toHaveLength(1)
    await db.pool.query(`UPDATE users SET email = 'eve,bob@example.com' WHERE id = $1`, [organization.admin.userId])
    await data.call(organization.admin, 'testMyNotices', { url })
    expect(addressees).toEqual(['"eve,bob"@example.com'])
  })

  test('that cannot be sent say why, are tried again for an hour, and a test says so at once', async () => {
    const { db } = data.app
    const { admin } = organization
    isRefusing = true
    const refused = await data.call(admin, 'testMyNotices', { url })
    expect(refused.body.error).toContain('Mailbox full')
    expect((await data.call(admin, 'testNoticeWebhook', { url })).status).toBe(404)
    expect(await list()).toMatchObject([{ status: 'waiting', attempts: 1, error: refused.body.error }])
    isRefusing = false
    const due = (change: string) =>
      db.pool.query(`UPDATE notices SET next_at = now() ${change} WHERE status = 'waiting'`)
    await due('')
    await waitUntil(async () => (await list())[0]?.status === 'sent' || undefined, { timeoutMs: 20_000 })
    expect(mails.filter((mail) => mail.includes('This is a test'))).toHaveLength(1)
    await data.call(admin, 'saveNoticeWebhook', { url, body: { url: data.endpoint.url } })
    data.endpoint.answerWith({ status: 500 })
    expect((await data.call(admin, 'testNoticeWebhook', { url })).body.error).toBe('The endpoint answered 500.')
    await due(`, created_at = now() - interval '61 minutes'`)
    const failed = await waitUntil(async () => (await list()).find(({ status }) => status === 'failed'), {
      timeoutMs: 20_000,
    })
    expect(failed).toMatchObject({ channel: 'webhook', attempts: 2, error: 'The endpoint answered 500.' })
    const refusedUrl = await data.call(admin, 'saveNoticeWebhook', { url, body: { url: 'http://10.0.0.1/' } })
    expect([refusedUrl.status, refusedUrl.error?.details?.[0]?.field]).toEqual([422, 'url'])
    expect((await data.call(admin, 'deleteNoticeWebhook', { url })).status).toBe(204)
    expect((await data.call(admin, 'getNotices', { url })).body.webhook).toBeNull()
  }, 60_000)
})
