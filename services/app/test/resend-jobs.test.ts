import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ResendJobOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { createInProcessQueue } from '@workflow-service/messaging'
import type { RunningService } from '@workflow-service/service-kit'
import {
  beginTransaction,
  createCapturedLogger,
  startCustomerEndpoint,
  startProcess,
  untilLocked,
  waitUntil,
} from '@workflow-service/testkit'
import { createAppServiceContext } from '../src/app-service-context.ts'
import { readAppConfig } from '../src/config.ts'
import { sendResendJobs } from '../src/resend-jobs.ts'
import { testEnv, useDataApp } from './support/use-app.ts'

const data = useDataApp({ hasMaintenance: false })
const senders: RunningService[] = []
let sourceId: string
beforeEach(async () => void (sourceId = await data.saveSource()))
afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.stop()
  await data.app.db.pool.query('TRUNCATE resend_jobs')
})

/** What an application has that sends the payloads of jobs. */
async function createContext(dispatcherUrl = data.dispatcherUrl) {
  const { logger } = createCapturedLogger({ service: 'app' })
  const config = readAppConfig({ ...testEnv(data.app.config.databaseUrl), DISPATCHER_URL: dispatcherUrl })
  return await createAppServiceContext(config, { sessionQueue: createInProcessQueue(), logger })
}

/** Starts an application that sends the payloads of jobs. */
async function startSender(): Promise<void> {
  senders.push(await data.app.startAnother({ dispatcherUrl: data.dispatcherUrl }))
}

const addFailed = (order: string, id = sourceId, resendOf?: string) =>
  data.addDelivery(id, {
    outcome: 'rejected',
    requestBody: { order_id: order, total: 1 },
    ...(resendOf !== undefined && { resendOf }),
  })

/** Saves a source whose secret cannot be decrypted until `swapKey` is called. */
async function saveOfMissingKey() {
  const id = await data.saveSource({ signing_secret: 'a signing secret' })
  const xorKeyId = 'set_byte(signing_secret, 1, get_byte(signing_secret, 1) # 1)'
  const swapKey = () =>
    data.app.db.pool.query(`UPDATE webhook_sources SET signing_secret = ${xorKeyId} WHERE id = $1`, [id])
  await swapKey()
  return { id, swapKey }
}

const create = async (body: object, person: 'owner' | 'admin' | 'member' = 'admin') =>
  await data.call(person, 'createResendJob', { body: { id: newId(), per_second: 100, ...body } })

const read = async (id: string): Promise<ResendJobOut> =>
  (await data.call('admin', 'getResendJob', { params: { resend_job_id: id } })).body

const untilEnded = (id: string) =>
  waitUntil(
    async () => {
      const job = await read(id)
      return job.status === 'running' ? undefined : job
    },
    { timeoutMs: 40_000 },
  )

/** Stops a job, and waits until the process that sends it has looked at it, as it does every few seconds. */
async function stopAndRenew(id: string): Promise<void> {
  await data.call('admin', 'stopResendJob', { params: { resend_job_id: id } })
  const { pool } = data.app.db
  await pool.query('UPDATE resend_jobs SET lease_until = now() WHERE id = $1', [id])
  const isRenewed = 'SELECT FROM resend_jobs WHERE id = $1 AND lease_until > now()'
  await waitUntil(async () => (await pool.query(isRenewed, [id])).rowCount, { timeoutMs: 60_000 })
}

const received = () => data.endpoint.requests.map(({ json }) => (json as { order_id: string }).order_id).toSorted()

describe('Payloads that are sent again together', () => {
  test('are those that match, each once, with a preview, an audit event and their outcomes', async () => {
    const other = await data.saveSource()
    const asksFirst = await data.saveSource()
    await data.app.db.prisma.webhookSource.update({ where: { id: asksFirst }, data: { approval: 'always' } })
    for (const order of ['A', 'B', 'C']) await addFailed(order)
    // Sent again and rejected again: the same payload. Sent again and accepted: done.
    const twice = await addFailed('D')
    await addFailed('D', sourceId, twice)
    const handled = await addFailed('E')
    await data.addDelivery(sourceId, { requestBody: { order_id: 'E' }, resendOf: handled })
    const { pool } = data.app.db
    await addFailed('F', other)
    await addFailed('G', asksFirst)
    const preview = (body: object) => data.call('admin', 'previewResends', { body: { per_second: 100, ...body } })
    expect((await preview({ outcome: 'rejected' })).body).toMatchObject({
      total: 5,
      is_more: false,
      sources: [
        { id: sourceId, count: 4, needs_approval: false },
        { count: 1, needs_approval: expect.any(Boolean) },
        { count: 1, needs_approval: expect.any(Boolean) },
      ],
    })
    expect(data.endpoint.requests).toEqual([])
    await startSender()
    const { status, body } = await create({ source_id: sourceId, outcome: 'rejected' })
    expect([status, body]).toMatchObject([201, { status: 'running', total: 4, done: 0, created_by: 'The admin' }])
    expect(await untilEnded(body.id)).toMatchObject({
      status: 'done',
      done: 4,
      not_sent: 0,
      outcomes: { accepted: 4 },
      finished_at: expect.any(String),
    })
    expect((await data.call('admin', 'listResendJobs')).body.data).toEqual([{ ...(await read(body.id)), outcomes: {} }])
    expect(received()).toEqual(['A', 'B', 'C', 'D'])
    // Repeated after a lost response, nothing is left that matches, or all is: the job has its payloads.
    for (const outcome of ['rejected', 'accepted']) {
      const repeated = await create({ id: body.id, source_id: sourceId, outcome })
      expect([repeated.status, repeated.body]).toMatchObject([201, { id: body.id, status: 'done', total: 4 }])
    }
    const others = await create({ id: body.id, source_id: sourceId, outcome: 'accepted' }, 'member')
    expect(others.error?.code).toBe('id_taken')
    const { rows } = await pool.query(`SELECT changes FROM audit_events WHERE action = 'resend_job.started'`)
    expect(rows).toEqual([{ changes: [{ field: 'payloads', old: null, new: 4 }] }])
    // All of the source is done now.
    const none = await create({ source_id: sourceId, outcome: 'rejected' })
    expect([none.status, none.error?.code]).toEqual([409, 'not_resendable'])
  })

  test('are no more than the preview has counted, also when others fail while a person reads it', async () => {
    await addFailed('V1')
    const { prisma } = data.app.db
    const requestBody = { order_id: 'V2', total: 1 }
    const underWay = await data.addDelivery(sourceId, { outcome: 'in_flight', finishedAt: null, requestBody })
    const filter = { source_id: sourceId, needs_attention: 'yes' } as const
    const { body: preview } = await data.call('admin', 'previewResends', { body: { per_second: 100, ...filter } })
    expect(preview.total).toBe(1)
    const finishedAt = new Date(Date.now() + 1_000)
    await prisma.delivery.update({ where: { id: underWay }, data: { outcome: 'rejected', status: 500, finishedAt } })
    await data.addDelivery(sourceId, { outcome: 'rejected', finishedAt })
    const { body } = await create({ ...filter, previewed_at: preview.previewed_at })
    expect(body.total).toBe(1)
    await startSender()
    expect(await untilEnded(body.id)).toMatchObject({ status: 'done', done: 1 })
    expect(received()).toEqual(['V1'])
    // Without a preview, all that match.
    expect((await create(filter)).body.total).toBe(2)
  })

  test('go on when the application is killed in the middle, and none is sent twice', async () => {
    const orders = Array.from({ length: 12 }, (_, n) => `K${String(n).padStart(2, '0')}`)
    for (const order of orders) await addFailed(order)
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith((_, index) => (index < 4 ? { status: 204 } : answer.promise))
    const killed = await startProcess({
      args: [fileURLToPath(new URL('../src/main.ts', import.meta.url))],
      env: { ...testEnv(data.app.config.databaseUrl), DISPATCHER_URL: data.dispatcherUrl },
      readyWhen: { line: '"service.started"' },
    })
    const { body } = await create({ source_id: sourceId, per_second: 4 })
    await data.endpoint.waitForRequests(6)
    killed.kill('SIGKILL')
    await killed.exited
    await data.app.db.pool.query('UPDATE resend_jobs SET lease_until = now()')
    await startSender()
    answer.resolve({ status: 204 })
    expect(await untilEnded(body.id)).toMatchObject({ status: 'done', done: 12, outcomes: { accepted: 12 } })
    expect(received()).toEqual(orders)
  })

  test('are all sent when the process was paused for longer than its lease, and leases the job a second time', async () => {
    const orders = Array.from({ length: 6 }, (_, n) => `L${n}`)
    for (const order of orders) await addFailed(order)
    const other = await data.saveSource()
    await addFailed('other', other)
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(({ json }) =>
      ['L0', 'L1'].includes((json as { order_id: string }).order_id) ? answer.promise : { status: 204 },
    )
    const { body } = await create({ source_id: sourceId, per_second: 2 })
    const { body: otherJob } = await create({ source_id: other })
    await startSender()
    // Its worker looks for other jobs from now on.
    await untilEnded(otherJob.id)
    await data.endpoint.waitForRequests(3)
    const { pool } = data.app.db
    await pool.query(`UPDATE resend_jobs SET lease_until = clock_timestamp() - interval '1 s' WHERE id = $1`, [body.id])
    const leased = 'SELECT FROM resend_jobs WHERE id = $1 AND lease_until > now()'
    await waitUntil(async () => (await pool.query(leased, [body.id])).rowCount === 1)
    answer.resolve({ status: 204 })
    expect(await untilEnded(body.id)).toMatchObject({ status: 'done', done: 6, outcomes: { accepted: 6 } })
    expect(received()).toEqual([...orders, 'other'])
  })

  test('of a job that comes later are sent while the endpoint of the first is slow', async () => {
    await addFailed('slow')
    const other = await data.saveSource()
    await addFailed('later', other)
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(({ text }) => (text.includes('slow') ? answer.promise : { status: 204 }))
    await startSender()
    const { body: slow } = await create({ source_id: sourceId })
    await data.endpoint.waitForRequests(1)
    const { body: later } = await create({ source_id: other })
    expect(await untilEnded(later.id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
    expect(await read(slow.id)).toMatchObject({ status: 'running' })
    answer.resolve({ status: 204 })
  })

  test('wait while their source is paused, without holding up others, and can be stopped then', async () => {
    const other = await data.saveSource()
    const stop = (id: string) => data.call('admin', 'stopResendJob', { params: { resend_job_id: id } })
    // As many as a process sends at once, before the one of another source.
    const jobs: string[] = []
    for (const order of ['O1', 'O2', 'O3', 'O4']) jobs.push((await create({ ids: [await addFailed(order)] })).body.id)
    const ids = [await addFailed('Q0', other)]
    for (const order of ['P1', 'P2', 'P3']) ids.push(await addFailed(order))
    await data.call('admin', 'pauseWebhookSource', { params: { source_id: sourceId } })
    for (const order of ['Q1', 'Q2']) ids.push(await addFailed(order, other))
    const mixed = await create({ ids, per_second: 2 })
    await startSender()
    // The payloads of the other source are the newest ones of the job.
    const waiting = await waitUntil(
      async () => {
        const job = await read(mixed.body.id)
        return job.done === 3 ? job : undefined
      },
      { timeoutMs: 40_000 },
    )
    expect(waiting).toMatchObject({ status: 'running', total: 6, not_sent: 0, outcomes: { accepted: 3 } })
    expect(received()).toEqual(['Q0', 'Q1', 'Q2'])
    // Given back, so that nothing is asked for before the lease is over.
    const { pool } = data.app.db
    const leases = async () =>
      (await pool.query(`SELECT FROM resend_jobs WHERE lease_owner IS NULL AND lease_until > clock_timestamp()`))
        .rowCount
    await waitUntil(async () => (await leases()) === 5 || undefined, { timeoutMs: 20_000 })
    for (const id of jobs) expect((await stop(id)).body).toMatchObject({ status: 'stopped', done: 0 })
    const { rows } = await pool.query(`SELECT changes FROM audit_events WHERE action = 'resend_job.stopped'`)
    expect(rows).toEqual(jobs.map(() => ({ changes: [{ field: 'payloads', old: 1, new: 0 }] })))
    const response = await data.call('admin', 'resumeWebhookSource', { params: { source_id: sourceId } })
    expect(response.body).toMatchObject({ paused_at: null, paused_by: null })
    await pool.query('UPDATE resend_jobs SET lease_until = now()')
    expect(await untilEnded(mixed.body.id)).toMatchObject({ status: 'done', done: 6, outcomes: { accepted: 6 } })
    expect(received()).toEqual(['P1', 'P2', 'P3', 'Q0', 'Q1', 'Q2'])
    for (const id of jobs) expect(await read(id)).toMatchObject({ status: 'stopped', done: 0, outcomes: {} })
  })

  test('wait while their organization is suspended', async () => {
    const { pool } = data.app.db
    const suspend = (isSuspended: boolean) => pool.query('UPDATE organizations SET is_suspended = $1', [isSuspended])
    await addFailed('U1')
    const { body } = await create({ source_id: sourceId })
    await suspend(true)
    await startSender()
    const isWaiting = `SELECT FROM resend_jobs WHERE done > 0 OR (lease_owner IS NULL AND lease_until > clock_timestamp())`
    await waitUntil(async () => (await pool.query(isWaiting)).rowCount === 1)
    await suspend(false)
    expect(await read(body.id)).toMatchObject({ status: 'running', done: 0, not_sent: 0 })
    await pool.query('UPDATE resend_jobs SET lease_until = now()')
    expect(await untilEnded(body.id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
  })

  test('wait while DISPATCHER_URL has a path that no dispatcher has', async () => {
    await addFailed('D1')
    const { body } = await create({ source_id: sourceId })
    const ctx = await createContext(`${data.dispatcherUrl}/base`)
    await sendResendJobs(ctx, AbortSignal.timeout(1_500), async () => {}, 500)
    await ctx.close()
    expect(await read(body.id)).toMatchObject({ status: 'running', done: 0, not_sent: 0 })
    await startSender()
    expect(await untilEnded(body.id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
  })

  test('are no more in a second than their rate says', async () => {
    for (const order of ['R1', 'R2', 'R3', 'R4', 'R5']) await addFailed(order)
    const ctx = await createContext()
    const stop = new AbortController()
    const over = Promise.withResolvers<void>()
    let seconds = 0
    const { body } = await create({ source_id: sourceId, per_second: 2 })
    const sending = sendResendJobs(ctx, stop.signal, async () => {
      seconds += 1
      await over.promise
    })
    const untilDone = (done: number) => waitUntil(async () => (await read(body.id)).done === done || undefined)
    await untilDone(2)
    expect([seconds, received()]).toEqual([1, ['R1', 'R2']])
    over.resolve()
    await untilDone(5)
    expect([seconds, received()]).toEqual([3, ['R1', 'R2', 'R3', 'R4', 'R5']])
    await sending
    // By itself, a second is a second: a timer never ends early.
    await create({ ids: [await addFailed('R6'), await addFailed('R7')], per_second: 1 })
    const startedMs = performance.now()
    await sendResendJobs(ctx, stop.signal)
    expect(received()).toHaveLength(7)
    expect(performance.now() - startedMs).toBeGreaterThan(1_990)
    await ctx.close()
  })

  test('wait for their turn among organizations, however many and long the jobs of one are', async () => {
    const other = await data.app.createOrganization()
    const theirs = await data.saveSource({}, other)
    for (const job of ['A', 'B', 'C', 'D', 'E']) {
      await create({ ids: [await addFailed(`${job}1`), await addFailed(`${job}2`)], per_second: 1 })
    }
    const body = { id: newId(), per_second: 1, ids: [await addFailed('X1', theirs)] }
    expect((await data.call(other.admin, 'createResendJob', { body })).status).toBe(201)
    const ctx = await createContext()
    const inOrder = () => data.endpoint.requests.map(({ json }) => (json as { order_id: string }).order_id)
    // A second lasts until the payloads of the four jobs that are sent at once have arrived.
    let begun = 0
    const untilNextSecond = async () => {
      begun += 1
      const arrived = Math.min(Math.ceil(begun / 4) * 4, 11)
      await waitUntil(() => inOrder().length >= arrived || undefined)
    }
    await sendResendJobs(ctx, AbortSignal.timeout(20_000), untilNextSecond, 0)
    expect(inOrder().slice(0, 4)).toContain('X1')
    expect(inOrder().slice(0, 8)).toEqual(expect.arrayContaining(['A1', 'B1', 'C1', 'D1', 'E1']))
    expect(received()).toHaveLength(11)
    await ctx.close()
  })

  test('do not wait behind jobs whose payloads cannot be sent for now, such as those with a secret of a missing key', async () => {
    const { id: ofMissingKey, swapKey } = await saveOfMissingKey()
    // As many as a process sends at once.
    const waiting: string[] = []
    for (const order of ['W1', 'W2', 'W3', 'W4'])
      waiting.push((await create({ ids: [await addFailed(order, ofMissingKey)] })).body.id)
    const { body: later } = await create({ ids: [await addFailed('X1')] })
    await data.app.db.pool.query(`UPDATE resend_jobs SET created_at = now() - interval '1 hour' WHERE id = ANY ($1)`, [
      waiting,
    ])
    const ctx = await createContext()
    const sending = sendResendJobs(ctx, AbortSignal.timeout(50_000), async () => {}, 500)
    expect(await untilEnded(later.id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
    for (const id of waiting) expect(await read(id)).toMatchObject({ status: 'running', done: 0, not_sent: 0 })
    await swapKey()
    for (const id of waiting) expect(await untilEnded(id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
    await sending
    expect(received()).toEqual(['W1', 'W2', 'W3', 'W4', 'X1'])
    await ctx.close()
  }, 60_000)

  test('do not wait behind those of the same job to another source that cannot be sent for now', async () => {
    const { id: ofMissingKey, swapKey } = await saveOfMissingKey()
    const ids = [await addFailed('W1', ofMissingKey), await addFailed('W2', ofMissingKey)]
    for (const order of ['X1', 'X2']) ids.push(await addFailed(order))
    const { body: job } = await create({ ids, per_second: 1 })
    const ctx = await createContext()
    const sending = sendResendJobs(ctx, AbortSignal.timeout(30_000), async () => {}, 500)
    await data.endpoint.waitForRequests(2)
    expect(received()).toEqual(['X1', 'X2'])
    await swapKey()
    expect(await untilEnded(job.id)).toMatchObject({ status: 'done', not_sent: 0, outcomes: { accepted: 4 } })
    await sending
    const inOrder = data.endpoint.requests.map(({ json }) => (json as { order_id: string }).order_id)
    expect(inOrder).toEqual(['X1', 'X2', 'W1', 'W2'])
    await ctx.close()
  }, 60_000)

  test('hold up no stop while their endpoint is slow: the next process has their outcomes', async () => {
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(() => answer.promise)
    const { body } = await create({ ids: [await addFailed('K1')] })
    const ctx = await createContext()
    const stop = new AbortController()
    const sending = sendResendJobs(ctx, stop.signal)
    await data.endpoint.waitForRequests(1)
    stop.abort()
    await sending
    expect(await read(body.id)).toMatchObject({ status: 'running', done: 0 })
    const next = sendResendJobs(ctx, AbortSignal.timeout(120_000))
    answer.resolve({ status: 200 })
    await next
    expect(await read(body.id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
    expect(received()).toEqual(['K1'])
    await ctx.close()
  })

  test('are waited for by a stop, also after a look for other jobs has failed', async () => {
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(() => answer.promise)
    const { body } = await create({ ids: [await addFailed('L1')] })
    const ctx = await createContext()
    const { pool } = ctx.db
    let looks = 0
    const query = async (...args: [string, unknown[]]) => {
      if (args[0].includes('row_number() OVER') && ++looks > 1) throw new Error('Connection terminated')
      return await pool.query(...args)
    }
    let hasEnded = false
    const sending = sendResendJobs(
      { ...ctx, db: { ...ctx.db, pool: { query } } as never },
      AbortSignal.timeout(120_000),
    )
    void sending.catch(() => {}).finally(() => (hasEnded = true))
    await data.endpoint.waitForRequests(1)
    await waitUntil(() => looks === 4)
    await nextTurn()
    expect(hasEnded).toBe(false)
    answer.resolve({ status: 200 })
    await expect(sending).rejects.toThrow('Connection terminated')
    expect(await read(body.id)).toMatchObject({ status: 'done', outcomes: { accepted: 1 } })
    await ctx.close()
  })

  test('stop when a person says so, and those that cannot be sent are counted', async () => {
    const gone = await data.saveSource()
    for (let n = 0; n < 3; n += 1) await addFailed(`S${n}`)
    await addFailed('T', gone)
    const stopped = await create({ source_id: sourceId, outcome: 'rejected', per_second: 1 })
    // Its payloads are in no other job until it is stopped.
    expect((await create({ source_id: sourceId })).error?.message).toContain('a running job has them')
    const response = await data.call('admin', 'stopResendJob', { params: { resend_job_id: stopped.body.id } })
    expect(response.body).toMatchObject({ status: 'stopped', done: 0, finished_at: expect.any(String) })
    const { body } = await create({ outcome: 'rejected', search: 'order_id' })
    await data.call('admin', 'deleteWebhookSource', { params: { source_id: gone } })
    await startSender()
    expect(await untilEnded(body.id)).toMatchObject({ status: 'done', not_sent: 1 })
    expect(received().filter((order) => order === 'S1')).toHaveLength(1)
    expect(await read(stopped.body.id)).toMatchObject({ status: 'stopped', done: 0, outcomes: {} })
  })

  test('are counted when they were under way as a person stopped the job', async () => {
    for (let n = 0; n < 3; n += 1) await addFailed(`Y${n}`)
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(() => answer.promise)
    const ctx = await createContext()
    const { body: job } = await create({ source_id: sourceId, per_second: 2 })
    const sent = sendResendJobs(ctx, AbortSignal.timeout(120_000))
    await data.endpoint.waitForRequests(2)
    await stopAndRenew(job.id)
    answer.resolve({ status: 204 })
    await sent
    expect(await read(job.id)).toMatchObject({ status: 'stopped', done: 2, not_sent: 0, outcomes: { accepted: 2 } })
    await ctx.close()
  })

  test('are counted when they were under way as a person stopped the job, also after one that was not sent yet', async () => {
    const first = await addFailed('Z1')
    await addFailed('Z2')
    const answer = Promise.withResolvers<void>()
    const error = { code: 'service_unavailable', message: 'The dispatcher is at its limit.', request_id: 'r' }
    const dispatcher = await startCustomerEndpoint({
      answer: async ({ json }) => {
        if ((json as { resend_of: string }).resend_of === first) return { status: 503, body: { error } }
        await answer.promise
        return { status: 200, body: {} }
      },
    })
    const ctx = await createContext(dispatcher.url)
    const { body: job } = await create({ source_id: sourceId })
    const sent = sendResendJobs(ctx, AbortSignal.timeout(120_000), undefined, 120_000)
    await dispatcher.waitForRequests(2)
    await stopAndRenew(job.id)
    answer.resolve()
    await sent
    expect(await read(job.id)).toMatchObject({ status: 'stopped', done: 1, not_sent: 0 })
    await ctx.close()
    await dispatcher.close()
  })

  test('leave out one that is being sent again, also by a job that was stopped meanwhile', async () => {
    const byPerson = await addFailed('U1')
    await addFailed('U2')
    const answer = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(() => answer.promise)
    const resent = data.call('admin', 'resendDelivery', {
      params: { delivery_id: newId() },
      body: { resend_of: byPerson },
    })
    await data.endpoint.waitForRequests(1)
    const filter = { source_id: sourceId, outcome: 'rejected' } as const
    const { body: job } = await create(filter)
    expect(job.total).toBe(1)
    await startSender()
    await data.endpoint.waitForRequests(2)
    await data.call('admin', 'stopResendJob', { params: { resend_job_id: job.id } })
    expect((await data.call('admin', 'previewResends', { body: { per_second: 100, ...filter } })).body.total).toBe(0)
    expect((await create(filter)).error?.code).toBe('not_resendable')
    answer.resolve({ status: 204 })
    expect((await resent).body.outcome).toBe('accepted')
    expect(received()).toEqual(['U1', 'U2'])
  })

  test('are no more than the preview has counted, also when a resend that was under way fails', async () => {
    await addFailed('W1')
    const second = await addFailed('W2')
    const requestBody = { order_id: 'W2', total: 1 }
    const resend = { outcome: 'in_flight', finishedAt: null, requestBody, resendOf: second }
    const id = await data.addDelivery(sourceId, resend)
    const filter = { source_id: sourceId, outcome: 'rejected' } as const
    const { body: preview } = await data.call('admin', 'previewResends', { body: { per_second: 100, ...filter } })
    expect(preview.total).toBe(1)
    const finishedAt = new Date(Date.now() + 1_000)
    await data.app.db.prisma.delivery.update({ where: { id }, data: { outcome: 'rejected', status: 500, finishedAt } })
    const { previewed_at } = preview
    expect((await create({ ...filter, previewed_at })).body.total).toBe(1)
    expect((await create(filter)).body.total).toBe(1)
  })

  test('are asked for again when the dispatcher could not read the request', async () => {
    await addFailed('X')
    const error = { code: 'invalid_request', message: 'The request took too long to arrive.', request_id: 'r' }
    const dispatcher = await startCustomerEndpoint({
      answer: (_, index) => (index === 0 ? { status: 400, body: { error } } : { status: 200, body: {} }),
    })
    const ctx = await createContext(dispatcher.url)
    const { body } = await create({ source_id: sourceId })
    await sendResendJobs(ctx, AbortSignal.timeout(120_000))
    expect(await read(body.id)).toMatchObject({ status: 'done', done: 1, not_sent: 0 })
    expect(new Set(dispatcher.requests.map(({ path }) => path)).size).toBe(1)
    await ctx.close()
    await dispatcher.close()
  })

  test('are not sent to a source that asks for approval since the job began, also of who may approve', async () => {
    for (const order of ['A1', 'A2', 'A3']) await addFailed(order)
    const ctx = await createContext()
    const { body } = await create({ source_id: sourceId, per_second: 1 })
    await sendResendJobs(ctx, AbortSignal.timeout(20_000), async () => {
      await waitUntil(async () => (await read(body.id)).done > 0 || undefined)
      await data.app.db.prisma.webhookSource.update({ where: { id: sourceId }, data: { approval: 'always' } })
    })
    expect(await read(body.id)).toMatchObject({ status: 'done', not_sent: 2, outcomes: { accepted: 1 } })
    expect(received()).toEqual(['A1'])
    await ctx.close()
  })

  test('are, of a member, those of workflows that they see, and so are their jobs', async () => {
    const hidden = await data.createRun(await data.createWorkflow('Salaries', []))
    const secret = await data.addDelivery(sourceId, { runId: hidden, outcome: 'rejected' })
    const { status } = await create({ ids: [secret] }, 'member')
    expect(status).toBe(409)
    const admins = await create({ ids: [secret] })
    expect(admins.body.total).toBe(1)
    const params = { resend_job_id: admins.body.id }
    expect((await data.call('member', 'getResendJob', { params })).status).toBe(404)
    expect((await data.call('member', 'stopResendJob', { params })).status).toBe(404)
    expect((await data.call('member', 'listResendJobs')).body.data).toEqual([])
    expect((await data.call('admin', 'listResendJobs')).body.data.map(({ id }) => id)).toEqual([admins.body.id])
    expect((await create({ ids: [newId()] })).status).toBe(409)
  })

  test('are not sent any more once their workflow is hidden from the member whose job it is', async () => {
    const workflowId = await data.createWorkflow('Offers', [data.app.organization.member.userId])
    for (const order of ['A1', 'A2']) {
      const requestBody = { order_id: order, total: 1 }
      await data.addDelivery(sourceId, { runId: await data.createRun(workflowId), outcome: 'rejected', requestBody })
    }
    const ctx = await createContext()
    const { body } = await create({ source_id: sourceId, per_second: 1 }, 'member')
    await sendResendJobs(ctx, AbortSignal.timeout(20_000), async () => {
      await waitUntil(async () => (await read(body.id)).done > 0 || undefined)
      await data.app.db.pool.query('DELETE FROM workflow_users WHERE workflow_id = $1', [workflowId])
    })
    expect(await read(body.id)).toMatchObject({ status: 'done', not_sent: 1, outcomes: { accepted: 1 } })
    expect(received()).toEqual(['A1'])
    await ctx.close()
  })

  test('are not those of a workflow that is hidden from the member while the job waits for another one', async () => {
    const { id, member } = data.app.organization
    const { pool } = data.app.db
    const workflowId = await data.createWorkflow('Offers', [member.userId])
    const runId = await data.createRun(workflowId)
    const deliveryId = await data.addDelivery(sourceId, { runId, outcome: 'rejected' })
    using other = await beginTransaction(pool)
    await other.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`resend jobs of ${id}`])
    const creating = create({ ids: [deliveryId] }, 'member')
    await untilLocked(pool, 'pg_advisory_xact_lock')
    await other.query('DELETE FROM workflow_users WHERE workflow_id = $1', [workflowId])
    await other.query('COMMIT')
    expect((await creating).error?.code).toBe('not_resendable')
    expect((await data.call('admin', 'listResendJobs')).body.data).toEqual([])
  })
})
