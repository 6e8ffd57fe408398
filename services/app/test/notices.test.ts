import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import {
  type Database,
  listEventOrganizations,
  listNoticeOrganizations,
  MAX_WAITING_EVENTS,
  newId,
  recordNotices,
  recordRunEvents,
  recordTestNotice,
  takeDueNotices,
} from '@workflow-service/database'
import { beginTransaction, createCapturedLogger, untilLocked, waitUntil } from '@workflow-service/testkit'
import { checkServiceSignature, checkServiceToken, parseEvent } from '@workflow-service/webhook-token'
import { SMTPServer } from 'smtp-server'
import type { AppServiceContext } from '../src/app-service-context.ts'
import { createLimiter } from '../src/auth/sign-in-limits.ts'
import { ADDRESS_QUOTA, MAIL_QUOTA } from '../src/mail-quota.ts'
import { makeNotices, sendNotice, sendNotices } from '../src/notices.ts'
import { keyIn, type TestOrganization, useDataApp } from './support/use-app.ts'

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
      // Without the line breaks of the transfer.
      mails.push(text.replaceAll(/=\r\n|\r\n(?= )/g, ''))
      done()
    })
  },
})

beforeAll(async () => void (await once(smtp.listen(0, '127.0.0.1'), 'listening')))
afterAll(async () => {
  await new Promise<void>((resolve) => smtp.close(() => resolve()))
})
const data = useDataApp({
  env: () => ({
    SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as { port: number }).port}`,
    SMTP_FROM: 'Workflows <w@example.com>',
  }),
})

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString()
let organization: TestOrganization
beforeEach(async () => {
  mails.length = 0
  addressees.length = 0
  isRefusing = false
  organization = await data.app.createOrganization()
})
afterEach(async () => {
  const { pool } = data.app.db
  // The application's timers would make and send them in another test.
  await pool.query(`UPDATE users SET notice_kinds = '{}'`)
  await pool.query('DELETE FROM notice_webhooks')
  await pool.query(`DELETE FROM notices WHERE status = 'waiting'`)
})

/** What an application has that makes and sends notices. */
function createContext() {
  const { config, db } = data.app
  const { logger, lines } = createCapturedLogger({ service: 'app' })
  const mailLimiter = createLimiter(MAIL_QUOTA, { url: undefined, logger })
  const addressLimiter = createLimiter(ADDRESS_QUOTA, { url: undefined, logger })
  return { ctx: { config, db, logger, mailLimiter, addressLimiter } as unknown as AppServiceContext, lines }
}

/** Returns the database, for `recordNotices`, that does this before and after it inserts notices. */
function whileInserting(db: Database, before: () => unknown = () => {}, after: () => unknown = () => {}): Database {
  const connect = async () => {
    const client = await db.pool.connect()
    const query = async (text: string, values: unknown[]) => {
      const isInsert = text.startsWith?.('INSERT INTO notices')
      if (isInsert) await before()
      const result = await client.query(text, values)
      if (isInsert) await after()
      return result
    }
    return { query, release: (error?: Error) => client.release(error) }
  }
  return { ...db, pool: { connect } } as unknown as Database
}

/** The application's timers make and send no notices of a suspended organization. */
const suspend = (isSuspended: boolean) =>
  data.app.db.prisma.organization.update({ where: { id: organization.id }, data: { isSuspended } })

const list = async () => (await data.call(organization.admin, 'getNotices')).body.data

/** Waits until there are so many notices, which the application's timer may record, too. */
const untilMade = (count: number) =>
  waitUntil(async () => (await recordNotices(data.app.db, organization.id, true), (await list()).length === count))

/** Waits until there are at least so many notices, all of which were sent. */
const untilSent = (count: number) =>
  waitUntil(
    async () => {
      const notices = await list()
      return notices.length >= count && notices.every(({ status }) => status === 'sent') ? notices : undefined
    },
    { timeoutMs: 20_000 },
  )

describe('Notices', () => {
  test('of failures go to the webhook, signed, and by email to whom chose them, once an hour for a reason', async () => {
    const { db } = data.app
    const { admin, member, id } = organization
    // Before there is a recipient: the application's timer may make the notices, too.
    const sourceId = await data.saveSource({ name: 'Order intake' }, organization)
    for (let n = 0; n < 3; n += 1) await data.addDelivery(sourceId, { outcome: 'rejected' })
    const secret = 'the secret of the notices, long enough'
    const hook = { url: data.endpoint.url, signing_secret: secret }
    const saved = await data.call(admin, 'saveNoticeWebhook', { body: hook })
    expect(saved.body.webhook).toEqual({ url: data.endpoint.url, has_signing_secret: true, events: [] })
    expect(saved.text).not.toContain(secret)
    expect((await data.call(admin, 'saveNoticeWebhook', { body: hook })).body.webhook).toEqual(saved.body.webhook)
    expect((await data.app.auditOf(id)).map(({ action }) => action)).toEqual(['notice_webhook.saved'])
    // The stored secret goes only where it was entered for.
    const moved = await data.call(admin, 'saveNoticeWebhook', { body: { url: 'http://127.0.0.1:9/' } })
    expect([moved.status, moved.error?.details]).toMatchObject([422, [{ field: 'signing_secret', code: 'missing' }]])
    const chosen = await data.call(admin, 'saveMyNotices', { body: { kinds: ['failures'] } })
    expect(chosen.body).toEqual({ kinds: ['failures'], has_mail: true })
    for (let n = 0; n < 2; n += 1) await data.call(member, 'saveMyNotices', { body: { kinds: ['approvals'] } })
    const changes = [{ field: 'notices', old: [], new: ['approvals'] }]
    expect(await data.app.auditOf(member.accountId)).toMatchObject([{ actor_id: member.userId, changes }])
    const { url } = await data.app.startAnother({ smtp: undefined }, false)
    const mine = await data.call(member, 'getMyNotices', { url })
    expect(mine.body).toEqual({ kinds: ['approvals'], has_mail: false })
    await Promise.all([recordNotices(db, id, true), recordNotices(db, id, true)])
    await untilMade(2)
    await data.addDelivery(sourceId, { outcome: 'rejected' })
    await recordNotices(db, id, true)
    const sent = await untilSent(2)
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
    await untilMade(4)
    await db.pool.query(`UPDATE notices SET created_at = created_at + interval '10 minutes'`)
    expect(await recordNotices(db, id, true)).toBe(0)
  })

  test('of a run are made when it fails after the last notice, also of an earlier start', async () => {
    const { db } = data.app
    const { admin, id } = organization
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
    const workflow = await data.createWorkflow('Slow', null, id)
    const fail = async (minutesAgo: number, notSucceededAt: Date) =>
      await data.createRun(workflow, {
        status: 'failed',
        error: 'model_failed: No.',
        createdAt: new Date(Date.now() - minutesAgo * 60_000),
        notSucceededAt,
      })
    await fail(100, new Date(Date.now() - 99 * 60_000))
    await untilMade(1)
    await untilSent(1)
    await db.pool.query(
      `UPDATE notices SET created_at = created_at - interval '90 minutes' WHERE organization_id = $1`,
      [id],
    )
    expect(await recordNotices(db, id, true)).toBe(0)
    await fail(110, new Date())
    await untilMade(2)
  })

  test('never carry a secret to an address that it was not entered for, also of two saves at once', async () => {
    const { admin, id } = organization
    const { pool } = data.app.db
    const save = async (body: object) => await data.call(admin, 'saveNoticeWebhook', { body })
    for (const isFirst of [true, false]) {
      if (!isFirst) await save({ url: data.endpoint.url, signing_secret: null })
      using other = await beginTransaction(pool)
      await other.query(
        `INSERT INTO notice_webhooks (organization_id, url, signing_secret) VALUES ($1, 'https://elsewhere.example/', '\\x01')
         ON CONFLICT (organization_id) DO UPDATE SET url = excluded.url, signing_secret = excluded.signing_secret`,
        [id],
      )
      const saving = save({ url: `${new URL(data.endpoint.url).origin}/other` })
      await untilLocked(pool, 'notice_webhooks')
      await other.query('COMMIT')
      expect((await saving).error?.details).toMatchObject([{ field: 'signing_secret', code: 'missing' }])
      const { rows } = await pool.query('SELECT url FROM notice_webhooks WHERE organization_id = $1', [id])
      expect(rows).toEqual([{ url: 'https://elsewhere.example/' }])
    }
  })

  test('have in the audit log what changes of the webhook, without its path and secret', async () => {
    const { admin, id } = organization
    const host = new URL(data.endpoint.url).origin
    const save = async (body: object) => await data.call(admin, 'saveNoticeWebhook', { body })
    await save({ url: `${host}/secret`, signing_secret: 'the secret of the notices, long enough' })
    for (let n = 0; n < 2; n += 1) await save({ url: `${host}/secret`, events: ['run.failed'] })
    await save({ url: `${host}/other` })
    await data.call(admin, 'deleteNoticeWebhook')
    const events = { field: 'events', old: [], new: ['run.failed'] }
    expect((await data.app.auditOf(id)).map(({ changes }) => changes)).toEqual([
      [
        { field: 'host', old: null, new: host },
        { field: 'signing_secret', old: null, new: 'replaced' },
      ],
      [events],
      [{ field: 'path', old: null, new: 'replaced' }],
      [
        { field: 'host', old: host, new: null },
        { ...events, old: events.new, new: [] },
      ],
    ])
  })

  test('of waiting approvals, paused sources and expiring keys are made once', async () => {
    const { admin, id } = organization
    const workflow = await data.createWorkflow('Orders', null, id)
    const run = await data.createRun(workflow, { status: 'waiting' })
    // More than the page of them shows.
    for (let n = 0; n < 101; n += 1) await data.createApproval(run)
    await data.createApproval(run, { expiresAt: new Date(0) })
    const sourceId = await data.saveSource({ name: 'Billing' }, organization)
    await data.call(admin, 'pauseWebhookSource', { params: { source_id: sourceId } })
    const failing = await data.saveSource({ name: 'Stock' }, organization)
    for (let n = 1; n <= 50; n += 1) {
      await data.addDelivery(failing, { outcome: 'rejected', createdAt: new Date(Date.now() - n * 15_000) })
    }
    await data.call(admin, 'createApiKey', { body: keyIn({ name: 'CI', expires_at: TOMORROW }) })
    // At last: the application's timer may make the notices, too.
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
    await untilMade(5)
    await recordNotices(data.app.db, id, true)
    expect((await list()).map(({ text }) => text).toSorted()).toEqual([
      '101 payloads wait for approval, the first to Order intake',
      '50 × Stock: rejected',
      expect.stringMatching(/^Billing was paused by /),
      expect.stringMatching(/^Stock is failing: 50 payloads in a row were not accepted since 20\S{8} \d\d:\d\d UTC$/),
      `The API key CI expires on ${TOMORROW.slice(0, 16).replace('T', ' ')} UTC`,
    ])
    // No more than 1,000 are counted.
    await data.app.db.pool.query(
      `INSERT INTO approvals SELECT (jsonb_populate_record(approval, jsonb_build_object('delivery_id', gen_random_uuid()))).*
       FROM approvals AS approval, generate_series(1, 9) WHERE expires_at > now()`,
    )
    await data.app.db.pool.query('DELETE FROM notices')
    await recordNotices(data.app.db, id, true)
    expect((await list()).map(({ text }) => text)).toContain(
      '1,000+ payloads wait for approval, the first to Order intake',
    )
  })

  test('that wait are not sent to a person who has lost access', async () => {
    const { admin, member, owner } = organization
    const users = (await data.call(owner, 'listUsers')).body.data
    const { version } = users.find(({ id: of }) => of === member.userId)!
    isRefusing = true
    for (const who of [admin, member]) await data.call(who, 'saveMyNotices', { body: { kinds: ['failures'] } })
    await data.addDelivery(await data.saveSource({ name: 'Order intake' }, organization), { outcome: 'rejected' })
    await untilMade(2)
    const params = { user_id: member.userId }
    expect((await data.call(owner, 'saveUser', { params, body: { is_deactivated: true, version } })).status).toBe(200)
    expect((await list()).map(({ recipient }) => recipient)).toEqual([admin.email])
  })

  test('that wait are not sent to a member from whom another person hides what they are about', async () => {
    const { db } = data.app
    const { member, owner, id } = organization
    const sourceId = await data.saveSource({ name: 'Order intake' }, organization)
    await data.call(member, 'saveMyNotices', { body: { kinds: ['failures', 'approvals'] } })
    const params = { workflow_id: await data.createWorkflow('Payroll', [member.userId], id) }
    const shown = await data.createWorkflow('Orders', null, id)
    await suspend(true)
    for (const [workflowId, outcome] of [[params.workflow_id, 'rejected'] as const, [shown, 'timed_out'] as const]) {
      const runId = await data.createRun(workflowId, { status: 'failed', error: 'internal_error: Its end' })
      await data.addDelivery(sourceId, { runId, outcome })
    }
    await data.createApproval(await data.createRun(params.workflow_id, { status: 'waiting' }))
    await recordNotices(db, id, true)
    expect(await list()).toHaveLength(5)
    const { users_version: version } = (await data.call(owner, 'getWorkflow', { params })).body
    const body = { user_ids: [owner.userId], version }
    expect((await data.call(owner, 'saveWorkflowUsers', { params, body })).status).toBe(200)
    await suspend(false)
    const notices = await untilSent(2)
    expect(notices.map(({ text }) => text).toSorted()).toEqual([
      '1 × Order intake: timed_out',
      '1 × Orders failed: internal_error: Its end',
    ])
    expect(mails.filter((mail) => mail.includes(id))).toHaveLength(2)
  })

  test('that are made while a person loses access are not sent to the person', async () => {
    const { db } = data.app
    const { member, owner, id } = organization
    await data.call(member, 'saveMyNotices', { body: { kinds: ['failures'] } })
    const sourceId = await data.saveSource({ name: 'Order intake' }, organization)
    isRefusing = true
    const { version } = (await data.call(owner, 'listUsers')).body.data.find(({ id: of }) => of === member.userId)!
    const deactivation = { params: { user_id: member.userId }, body: { is_deactivated: true, version } }
    const deactivate = async () => {
      await suspend(false)
      await data.call(owner, 'saveUser', deactivation)
    }
    await suspend(true)
    await data.addDelivery(sourceId, { outcome: 'rejected' })
    await recordNotices(whileInserting(db, deactivate), id, true)
    expect(await list()).toEqual([])
  })

  test('that are made for an admin who becomes a member meanwhile are not sent', async () => {
    const { db } = data.app
    const { admin, owner, id } = organization
    // Of a workflow that members do not see.
    await data.createRun(await data.createWorkflow('Payroll', [owner.userId], id), { status: 'failed', error: 'x: y' })
    isRefusing = true
    await data.call(admin, 'saveMyNotices', { body: { kinds: ['failures'] } })
    const { version } = (await data.call(owner, 'listUsers')).body.data.find(({ id: of }) => of === admin.userId)!
    const change = { params: { user_id: admin.userId }, body: { role: 'member' as const, version } }
    let changing: Promise<unknown> = Promise.resolve()
    // The change has begun when the notices are inserted, and are not committed.
    const begin = async () => {
      changing = data.call(owner, 'saveUser', change)
      await Promise.race([changing, untilLocked(db.pool)])
    }
    await recordNotices(whileInserting(db, undefined, begin), id, true)
    await changing
    expect((await data.call(owner, 'getNotices')).body.data).toEqual([])
  })

  test('that are made for a webhook that is removed meanwhile are not sent to the next one', async () => {
    const { db } = data.app
    const { admin, id } = organization
    await data.addDelivery(await data.saveSource({ name: 'Order intake' }, organization), { outcome: 'rejected' })
    data.endpoint.answerWith({ status: 500 })
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
    let removing: Promise<unknown> = Promise.resolve()
    // The removal has begun when the notices are inserted, and are not committed.
    const begin = async () => {
      removing = data.call(admin, 'deleteNoticeWebhook')
      await Promise.race([removing, untilLocked(db.pool, 'notice_webhooks')])
    }
    await recordNotices(whileInserting(db, undefined, begin), id, true)
    await removing
    expect(await list()).toEqual([])
    // The removal comes first.
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
    await recordNotices(
      whileInserting(db, () => data.call(admin, 'deleteNoticeWebhook')),
      id,
      true,
    )
    expect(await list()).toEqual([])
  })

  test('that are tests go to the address that their person has by then, and not to one who has lost access', async () => {
    const { db } = data.app
    const { admin, id } = organization
    const email = `new-${newId()}@acme.test`
    const begin = async (change: string) => {
      using other = await beginTransaction(db.pool)
      await other.query(`UPDATE users SET ${change} WHERE id = $1`, [admin.userId])
      const made = recordTestNotice(db, id, admin.userId)
      await Promise.race([made, untilLocked(db.pool, 'INSERT INTO notices')])
      await other.query('COMMIT')
      return await made
    }
    expect((await begin(`email = '${email}'`))?.recipient).toBe(email)
    expect(await begin('deactivated_at = now()')).toBeUndefined()
  })

  test('that are made while the address of a person changes are sent to the new one', async () => {
    const { db } = data.app
    const { member, id } = organization
    await data.call(member, 'saveMyNotices', { body: { kinds: ['failures'] } })
    const sourceId = await data.saveSource({ name: 'Order intake' }, organization)
    await suspend(true)
    await data.addDelivery(sourceId, { outcome: 'rejected' })
    isRefusing = true
    const email = `new-${newId()}@acme.test`
    // As the use of a link, which finds no notice that waits.
    const change = () => db.prisma.user.update({ where: { id: member.userId }, data: { email } })
    await recordNotices(whileInserting(db, change), id, true)
    await suspend(false)
    // Again if the application's timer was first.
    const due = await waitUntil(async () => {
      await db.pool.query('UPDATE notices SET next_at = now() WHERE organization_id = $1', [id])
      return (await takeDueNotices(db, 100, true)).find(({ userId }) => userId === member.userId)
    })
    expect(due.recipient).toBe(email)
    expect((await list()).map(({ recipient }) => recipient)).toEqual([email])
  })

  test('of a suspended organization are neither made nor sent, and a test says so', async () => {
    const { db } = data.app
    const { admin, id } = organization
    // Off until there is a webhook, or a person chooses.
    expect(await listNoticeOrganizations(db, true)).not.toContain(id)
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
    expect(await listNoticeOrganizations(db, true)).toContain(id)
    await suspend(true)
    expect(await listNoticeOrganizations(db, true)).not.toContain(id)
    const { body } = await data.call(admin, 'testNoticeWebhook')
    expect(body).toEqual({ error: 'The organization is suspended.' })
    await db.pool.query('UPDATE notices SET next_at = now() WHERE organization_id = $1', [id])
    await takeDueNotices(db, 100, true)
    expect(await list()).toMatchObject([{ status: 'waiting', attempts: 1 }])
    // The application's timer may send those of another test meanwhile.
    expect(data.endpoint.requests.filter(({ text }) => text.includes(id))).toEqual([])
  })

  test('of one organization are made although those of another fail, and go to one address', async () => {
    const { db, config } = data.app
    const other = await data.app.createOrganization()
    // Before there is something to notify of: the application's timer may make the notices, too.
    await db.pool.query(
      `ALTER TABLE notices ADD CONSTRAINT broken CHECK (organization_id <> '${organization.id}') NOT VALID`,
    )
    for (const each of [organization, other]) {
      await data.call(each.admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
      await data.call(each.admin, 'createApiKey', { body: keyIn({ expires_at: TOMORROW }) })
    }
    const { ctx, lines } = createContext()
    // Again while the application's timer makes those of the organization.
    await waitUntil(async () => (await makeNotices(ctx, new AbortController().signal), lines.length > 0))
    await db.pool.query('ALTER TABLE notices DROP CONSTRAINT broken')
    expect(lines).toMatchObject([{ msg: 'notice.not_made', organization_id: organization.id }])
    const unsent = await recordTestNotice(db, organization.id, organization.admin.userId)
    const error = await sendNotice({ ...ctx, config: { ...config, smtp: undefined } }, unsent!)
    expect(error).toContain('SMTP_URL is not set')
    expect(lines.slice(1)).toMatchObject([{ msg: 'notice.not_sent', notice_id: unsent!.id, error }])
    const name = 'Acme\u2028Bcc: eve@example.com'
    await db.pool.query('UPDATE organizations SET name = $2 WHERE id = $1', [organization.id, name])
    await sendNotice(ctx, { ...unsent!, body: { ...unsent!.body, type: 'notice.key_expiring', text: 'A key expires' } })
    const [mail = ''] = mails
    expect(mail).toContain('Subject: [Acme Bcc: eve@example.com] A key expires\r\n')
    expect(mail).toContain('Auto-Submitted: auto-generated\r\n')
    // Quoted-printable.
    const link = (page: string) => `http://localhost:8083/${page}?organization=3D${organization.id}\r\n`
    expect(mail).toContain(`\r\nA key expires\r\n\r\n${link('keys')}\r\nYou get the notices of Acme`)
    expect(mail).toContain(`under Account: ${link('account')}`)
    await db.pool.query('DELETE FROM notices WHERE id = $1', [unsent!.id])
    expect((await data.call(other.admin, 'getNotices')).body.data).toHaveLength(1)
    await db.pool.query(`UPDATE users SET email = 'eve,bob@example.com' WHERE id = $1`, [organization.admin.userId])
    await data.call(organization.admin, 'testMyNotices')
    expect(addressees).toEqual([organization.admin.email, '"eve,bob"@example.com'])
  })

  test('that are being sent are waited for by a stop, also after a look for others has failed', async () => {
    const { ctx } = createContext()
    const { pool } = ctx.db
    const answer = Promise.withResolvers<{ error: null }>()
    const notice = { id: newId(), organizationId: organization.id, userId: null, recipient: '', body: {}, attempts: 1 }
    const seen: string[] = []
    const query = async (...[text, values]: [string, unknown[]]) => {
      if (text.includes?.('attempts = attempts + 1')) {
        if (seen.push('look') === 1) return { rows: [notice] }
        throw new Error('Connection terminated')
      }
      if (text.includes?.('SET error = ')) seen.push('finish')
      return await pool.query(text, values)
    }
    const dispatcher = { call: () => answer.promise }
    const sending = sendNotices(
      { ...ctx, db: { ...ctx.db, pool: { query } }, dispatcher } as never,
      new AbortController().signal,
    )
    let hasEnded = false
    void sending.catch(() => {}).finally(() => (hasEnded = true))
    await waitUntil(() => seen.length === 2)
    await nextTurn()
    expect(hasEnded).toBe(false)
    answer.resolve({ error: null })
    await expect(sending).rejects.toThrow('Connection terminated')
    expect(seen).toEqual(['look', 'look', 'finish'])
  })

  test('flood no address: who set it need not be its owner', async () => {
    const { db } = data.app
    const { ctx } = createContext()
    const other = await data.app.createOrganization()
    const others = [other, await data.app.createOrganization(), await data.app.createOrganization()]
    const address = 'Victim@example.com'
    const send = async ({ id, admin }: TestOrganization, recipient: string) => {
      const notice = (await recordTestNotice(db, id, admin.userId))!
      const error = await sendNotice(ctx, { ...notice, recipient })
      // The application's timer would send it again.
      await db.pool.query('DELETE FROM notices WHERE id = $1', [notice.id])
      return error
    }
    isRefusing = true
    expect(await send(other, address)).toContain('Mailbox full')
    isRefusing = false
    for (let n = 0; n < 20; n += 1) expect(await send(organization, address)).toBeNull()
    const error = await send(organization, address.toLowerCase())
    expect(error).toBe('The address has got 20 emails within an hour: it gets no more for now.')
    expect(await send(organization, 'ada@example.com')).toBeNull()
    // One organization does not keep the notices of others from a person.
    for (let n = 0; n < 40; n += 1) expect(await send(others[n % 3]!, address)).toBeNull()
    const all = 'The address has got 60 emails within an hour: it gets no more for now.'
    // What was not sent does not count as an email of the organization.
    for (let n = 0; n < 10; n += 1) expect(await send(other, address)).toBe(all)
    expect(addressees.filter((each) => each !== 'ada@example.com')).toHaveLength(61)
  })

  test('are tested by email 20 times an hour in an organization', async () => {
    const { admin, member } = organization
    const tests = await Promise.all(
      Array.from({ length: 20 }, (_, n) => data.call(n % 2 === 0 ? admin : member, 'testMyNotices')),
    )
    expect(tests.map(({ body }) => body)).toEqual(tests.map(() => ({ error: null })))
    const refused = await data.call(member, 'testMyNotices')
    expect([refused.status, refused.error.code]).toEqual([429, 'rate_limited'])
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(3_500)
    expect(mails).toHaveLength(20)
  })

  test('of runs are events for programs: one each, of the chosen types, with the same id until one is accepted', async () => {
    const { db } = data.app
    const { admin, id } = organization
    const workflow = await data.createWorkflow('Orders', null, id)
    const secret = 'the secret of the events, long enough'
    const save = async (events: readonly string[]) => {
      const body = { url: data.endpoint.url, signing_secret: secret, events }
      expect((await data.call(admin, 'saveNoticeWebhook', { body })).body.webhook?.events).toEqual(events)
    }
    const early = await data.createRun(workflow, { status: 'failed', createdAt: new Date(Date.now() - 60_000) })
    await save([])
    expect(await listEventOrganizations(db)).not.toContain(id)
    await save(['run.failed', 'approval.waiting'])
    const failed = await data.createRun(workflow, { status: 'failed' })
    const waiting = await data.createRun(workflow, { status: 'waiting' })
    const approval = await data.createApproval(waiting)
    await data.createRun(workflow, { status: 'cancelled' })
    data.endpoint.answerWith({ status: 500 })
    expect(await listEventOrganizations(db)).toContain(id)
    await Promise.all([recordRunEvents(db, id), recordRunEvents(db, id)])
    await waitUntil(async () => (await recordRunEvents(db, id), (await list()).length >= 2) || undefined)
    expect(await recordRunEvents(db, id)).toBe(0)
    // Recorded as refused: what is recorded later would put the next attempt off.
    await waitUntil(async () => (await list()).every(({ error }) => error !== null) || undefined, { timeoutMs: 20_000 })
    data.endpoint.answerWith({ status: 204 })
    await db.pool.query('UPDATE notices SET next_at = now() WHERE organization_id = $1', [id])
    await untilSent(2)
    // The application's timer may make a notice for people of the same payload.
    const events = data.endpoint.requests.flatMap(({ json }) => parseEvent(json) ?? [])
    const byType = Map.groupBy(events, ({ type }) => type)
    expect([...byType.keys()].toSorted()).toEqual(['approval.waiting', 'run.failed'])
    expect(byType.get('run.failed')![0]).toMatchObject({
      organization_id: id,
      text: 'A run of Orders failed: delivery_rejected',
      data: { run_id: failed, workflow_id: workflow, error_code: 'delivery_rejected', delivery_id: null },
    })
    expect(byType.get('approval.waiting')![0]!.data).toMatchObject({ run_id: waiting, delivery_id: approval })
    expect(JSON.stringify(events)).not.toContain(early)
    for (const [type, [first]] of byType) {
      const requests = data.endpoint.requests.filter(({ json }) => parseEvent(json)?.type === type)
      const attempts = requests.map(({ headers }) => [headers['x-delivery-id'], headers['x-delivery-attempt']])
      expect(attempts.map(([, attempt]) => attempt)).toEqual(attempts.map((_, index) => `${index + 1}`))
      expect(new Set(attempts.map(([delivery]) => delivery))).toEqual(new Set([first!.id]))
      const last = requests.at(-1)!
      expect(await checkServiceSignature(last.headers, last.body, secret)).toMatchObject({ ok: true })
    }
  })

  test('of runs are recorded as far as an endpoint takes them, and hold up no other organization', async () => {
    const { db } = data.app
    const other = await data.app.createOrganization()
    data.endpoint.answerWith(({ path }) => (path === '/hang' ? 'hang' : { status: 204 }))
    for (const [each, path] of [
      [organization, 'hang'],
      [other, 'fast'],
    ] as const) {
      const body = { url: `${new URL(data.endpoint.url).origin}/${path}`, events: ['run.failed'] }
      expect((await data.call(each.admin, 'saveNoticeWebhook', { body })).status).toBe(200)
    }
    const first = await data.createRun(await data.createWorkflow('Storm', null, organization.id), { status: 'failed' })
    await db.pool.query(
      `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, error,
         finished_at, not_succeeded_at)
       SELECT gen_random_uuid(), organization_id, workflow_id, session_id, number + n, origin, context, request_id, status, error,
         finished_at, not_succeeded_at
       FROM starts CROSS JOIN generate_series(1, 1500) AS n WHERE id = $1`,
      [first],
    )
    const count = async () =>
      (await db.pool.query('SELECT FROM notices WHERE organization_id = $1', [organization.id])).rowCount
    // The timer of the application records, too.
    const whileRecording = { timeoutMs: 60_000 }
    await waitUntil(
      async () => (await recordRunEvents(db, organization.id), (await count()) === MAX_WAITING_EVENTS || undefined),
      whileRecording,
    )
    expect(await recordRunEvents(db, organization.id)).toBe(0)
    const received = (path: string) => data.endpoint.requests.filter((request) => request.path === path).length
    await waitUntil(() => received('/hang') > 0 || undefined, { timeoutMs: 20_000 })
    await data.createRun(await data.createWorkflow('Small', null, other.id), { status: 'failed' })
    await waitUntil(() => received('/fast') === 1 || undefined, { timeoutMs: 20_000 })
    // Those of two attempts at most: each ends after 10 s.
    expect(received('/hang')).toBeLessThanOrEqual(8)
    await waitUntil(async () => {
      await db.pool.query(`UPDATE notices SET status = 'sent' WHERE organization_id = $1`, [organization.id])
      await recordRunEvents(db, organization.id)
      return (await count()) === 1_501 || undefined
    }, whileRecording)
    expect(await recordRunEvents(db, organization.id)).toBe(0)
    const { rows } = await db.pool.query<{ events: number; runs: number }>(
      `SELECT count(*)::integer AS events, count(DISTINCT topic)::integer AS runs FROM notices
       WHERE organization_id = $1`,
      [organization.id],
    )
    expect(rows).toEqual([{ events: 1_501, runs: 1_501 }])
  })

  test('that cannot be sent say why, are tried again for an hour, and a test says so at once', async () => {
    const { db } = data.app
    const { admin } = organization
    isRefusing = true
    const refused = await data.call(admin, 'testMyNotices')
    expect(refused.body.error).toContain('Mailbox full')
    const elsewhere = new URL(data.app.config.smtp!.url.href.replace('//127.0.0.1', '//user:password@127.1'))
    const { url } = await data.app.startAnother({ smtp: { url: elsewhere, from: 'w@example.com' } }, false)
    expect((await data.call(organization.member, 'testMyNotices', { url })).body.error).toContain('STARTTLS')
    await db.pool.query('DELETE FROM notices WHERE user_id = $1', [organization.member.userId])
    expect((await data.call(admin, 'testNoticeWebhook')).status).toBe(404)
    expect(await list()).toMatchObject([{ status: 'waiting', attempts: 1, error: refused.body.error }])
    isRefusing = false
    const due = (change: string) =>
      db.pool.query(`UPDATE notices SET next_at = now() ${change} WHERE status = 'waiting'`)
    await due('')
    await untilSent(1)
    expect(mails.filter((mail) => mail.includes('This is a test'))).toHaveLength(1)
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url } })
    data.endpoint.answerWith({ status: 500 })
    expect((await data.call(admin, 'testNoticeWebhook')).body.error).toBe('The endpoint answered 500.')
    await due(`, created_at = now() - interval '61 minutes'`)
    const failed = await waitUntil(async () => (await list()).find(({ status }) => status === 'failed'), {
      timeoutMs: 20_000,
    })
    expect(failed).toMatchObject({ channel: 'webhook', attempts: 2, error: 'The endpoint answered 500.' })
    const refusedUrl = await data.call(admin, 'saveNoticeWebhook', { body: { url: 'http://10.0.0.1/' } })
    expect([refusedUrl.status, refusedUrl.error?.details?.[0]?.field]).toEqual([422, 'url'])
    await data.call(admin, 'testNoticeWebhook')
    expect((await list()).filter(({ status }) => status === 'waiting')).toHaveLength(1)
    expect((await data.call(admin, 'deleteNoticeWebhook')).status).toBe(204)
    expect((await data.call(admin, 'getNotices')).body.webhook).toBeNull()
    // They would go to the next webhook.
    expect((await list()).filter(({ status }) => status === 'waiting')).toEqual([])
  })
})
