import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { MAX_RESENDS, newId } from '@workflow-service/database'
import { startCustomerEndpoint, waitUntil } from '@workflow-service/testkit'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { failure, watchWf, wf } from './support/wf.ts'

const environment = useCliEnvironment()
let endpoint: Awaited<ReturnType<typeof startCustomerEndpoint>>
let sourceId: string

beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
  const source = orderIntakeSource(endpoint.url, { signing_secret: 'hunter2-hunter2' })
  const applied = await environment.apply({ organization: { name: 'Acme' }, webhook_sources: [source] })
  sourceId = (applied as { webhook_sources: { id: string }[] }).webhook_sources[0]?.id ?? ''
})
afterEach(async () => {
  await endpoint.close()
  await environment.clear()
})

const sources = async (...args: string[]) => await wf(environment.env, ['sources', ...args])
const rotate = async (secretsKey: string) =>
  await wf({ ...environment.env, SECRETS_KEY: secretsKey }, ['secrets', 'rotate', '--json'])
const newKey = () => randomBytes(32).toString('base64')

describe('wf sources list', () => {
  test('shows the name, the endpoint and whether requests are signed, never the secret', async () => {
    const { stdout } = await sources('list')
    expect(stdout).toMatch(new RegExp(`Order intake {2}[0-9a-f-]{36} {2}yes {5}\\d{4}-.* ${endpoint.url}/orders\n$`))
    const json = await sources('list', '--json')
    expect(json.json()).toMatchObject([
      { name: 'Order intake', has_signing_secret: true, example_request_body: { order_id: 'A-1' } },
    ])
    expect(stdout + json.stdout).not.toContain('hunter2')
  })
})

describe('wf sources pause and resume', () => {
  test('let payloads wait, and say so', async () => {
    const paused = await sources('pause', 'Order intake')
    expect(paused.stdout).toMatch(/^Order intake is paused\./)
    const json = () => sources('list', '--json')
    expect((await json()).json()).toMatchObject([{ paused_at: expect.any(String) }])
    const refused = await sources('send', 'Order intake')
    expect(refused).toMatchObject(failure('is paused: resume it first'))
    await sources('resume', 'Order intake')
    expect((await json()).json()).toMatchObject([{ paused_at: null }])
    expect(endpoint.requests).toHaveLength(1)
  })
})

describe('wf sources test', () => {
  test('sends one verification request for the stored source and shows the answer', async () => {
    const { exitStatus, stdout } = await sources('test', 'ORDER INTAKE')
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Confirmed\. Order intake answered with status 204 after \d+ ms\.\n$/)
    expect(endpoint.requests).toHaveLength(2)
    expect(endpoint.requests[1]?.json).toMatchObject({ data: { signing_secret: 'hunter2-hunter2' } })
  })

  test('exits with 1 and shows the reason when the endpoint does not confirm', async () => {
    endpoint.answerWith({ status: 500 })
    const { exitStatus, stdout } = await sources('test', 'Order intake')
    expect(exitStatus).toBe(1)
    expect(stdout).toMatch(/^Not confirmed\. Order intake: The endpoint answered 500/)
    const json = await sources('test', 'Order intake', '--json')
    expect(json.json()).toMatchObject({ kind: 'verification', outcome: 'rejected', status: 500 })
  })

  test('rejects an unknown name', async () => {
    const stderr = 'Error: Acme has no webhook source Orders. List them with wf sources list.\n'
    expect(await sources('test', 'Orders')).toMatchObject({ exitStatus: 1, stderr })
  })

  test('names the setting when the dispatcher rejects the token', async () => {
    const env = { ...environment.env, INTERNAL_API_TOKEN: 'x'.repeat(40) }
    const { exitStatus, stderr } = await wf(env, ['sources', 'test', 'Order intake'])
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/rejected the token\. Set INTERNAL_API_TOKEN to the value/)
    expect(stderr).not.toContain('xxxx')
  })
})

describe('wf secrets rotate', () => {
  test('encrypts every secret with the first key, and exits with 1 and names each source whose key is not listed', async () => {
    const next = newKey()
    const failed = await rotate(next)
    expect(failed.exitStatus).toBe(1)
    expect(failed.json()).toMatchObject({ rotated: 0, failed: [{ reason: expect.stringMatching(/does not list/) }] })
    const both = await rotate(`${next},${environment.env['SECRETS_KEY']}`)
    expect(both.json()).toEqual({ rotated: 1, current: 0, failed: [] })
    expect((await rotate(next)).json()).toEqual({ rotated: 0, current: 1, failed: [] })
  })
})

const logs = async (...args: string[]) => await wf(environment.env, ['logs', 'order intake', ...args])
const send = async (payload: object) =>
  await wf(environment.env, ['sources', 'send', sourceId, '--payload', '-'], { input: JSON.stringify(payload) })
const entries = async (...args: string[]) =>
  (await logs(...args, '--json')).json() as { kind: string; outcome: string; request_body: unknown }[]

describe('wf logs', () => {
  beforeEach(() => endpoint.answerWith({ body: 'thank you' }))

  test('shows the newest first, with the reason of each failure and the text of each answer', async () => {
    await send({ order_id: 'A-2' })
    endpoint.answerWith({ status: 503 })
    await send({ order_id: 'A-3' })
    await send({ order: 'A-4' })
    const { stdout } = await logs()
    const lines = stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^TIME \(UTC\) +KIND +OUTCOME +STATUS +TOOK +RUN +REASON OR ANSWER/)
    expect(lines[1]).toMatch(/payload +invalid +– .*order_id: is required/)
    expect(lines[2]).toMatch(/payload +rejected +503 .*The endpoint answered 503/)
    expect(lines[3]).toMatch(/payload +accepted +200 .*"thank you"$/)
    expect(lines[4]).toMatch(/verification +accepted +204 /)
  })

  test('has in --json what the endpoint answered to a request that it rejected', async () => {
    endpoint.answerWith({ status: 422, body: 'no stock\nof \u001b[31mit', headers: { 'retry-after': '7' } })
    await send({ order_id: 'A-3' })
    expect((await logs()).stdout).not.toContain('no stock')
    expect(await entries('--kind', 'payload')).toMatchObject([
      { rejected_answer: 'no stock\nof [31mit', answer_headers: { 'retry-after': '7' } },
    ])
  })

  test('filters by outcome, kind and time, and stops at the limit', async () => {
    await send({ order_id: 'A-2' })
    await send({ wrong: 'A-3' })
    expect(await entries('--outcome', 'invalid')).toMatchObject([{ outcome: 'invalid' }])
    expect(await entries('--kind', 'verification')).toMatchObject([{ kind: 'verification' }])
    expect(await entries('--limit', '1')).toMatchObject([{ request_body: { wrong: 'A-3' } }])
    expect(await entries('--until', '1h')).toEqual([])
    expect(await entries('--since', '1h')).toHaveLength(3)
  })

  test('--follow prints each entry once, when it has its outcome, until Ctrl-C', async () => {
    await send({ order_id: 'A-2' })
    const { output, interrupt } = watchWf(environment.env, ['logs', sourceId, '--follow', '--json'])
    const bodies = () =>
      output()
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { request_body: { order_id?: string } }).request_body.order_id)
    await waitUntil(() => bodies().length === 2)
    const { promise: delayed, resolve: answerNow } = Promise.withResolvers<{ status: number }>()
    endpoint.answerWith(async (request) => {
      const { order_id: id } = request.json as { order_id: string }
      return id === 'A-3' ? await delayed : { status: 200 }
    })
    const slow = send({ order_id: 'A-3' })
    await endpoint.waitForRequests(3)
    await send({ order_id: 'A-4' })
    await waitUntil(() => bodies().includes('A-4'))
    answerNow({ status: 200 })
    await slow
    await waitUntil(() => bodies().includes('A-3'))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    expect(bodies()).toEqual([undefined, 'A-2', 'A-4', 'A-3'])
  })

  test('finds the log of a deleted source by its id', async () => {
    await environment.db.pool.query('UPDATE webhook_sources SET deleted_at = now()')
    expect(await logs()).toMatchObject({ exitStatus: 1 })
    expect(await wf(environment.env, ['logs', sourceId])).toMatchObject({ exitStatus: 0 })
  })
})

const resend = (...args: string[]) => wf(environment.env, ['deliveries', 'resend', ...args])

describe('wf deliveries resend', () => {
  test('shows what would be sent, and starts a job for what meets all conditions', async () => {
    endpoint.answerWith({ status: 500 })
    await send({ order_id: 'R-1' })
    const where = ['--where', 'source=Order intake', '--where', 'status=500', '--where', 'search=R-1']
    const preview = await resend(...where, '--dry-run')
    expect(preview.stdout).toBe('1 payloads would be sent.\n  Order intake: 1\n')
    const id = newId()
    const started = await resend(...where, '--rate', '5', '--id', id, '--json')
    expect(started.json()).toMatchObject({ id, status: 'running', total: 1, per_second: 5, created_by: 'operator' })
    await environment.db.prisma.delivery.deleteMany()
    expect((await resend(...where, '--id', id, '--json')).json()).toEqual(started.json())
    expect(await resend(...where.slice(0, 4), '--where', 'search=R-2')).toMatchObject({ stdout: '0 payloads.\n' })
    expect((await resend()).exitStatus).toBe(1)
    expect((await resend('--where', 'colour=red')).exitStatus).toBe(2)
    expect(await resend('--where', 'since=later')).toMatchObject(failure('It must be a time', 2))
    expect(await resend('--where', 'search=')).toMatchObject(failure('It must be FIELD=VALUE', 2))
    expect(await resend('--where', 'attention=true')).toMatchObject(failure('attention is yes or no'))
    await environment.db.pool.query(
      `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id)
       SELECT gen_random_uuid(), organization_id, id, 'payload', 'refused', '{}', 'r'
       FROM webhook_sources, generate_series(0, ${MAX_RESENDS})`,
    )
    expect(await resend('--where', 'outcome=refused', '--dry-run')).toMatchObject({
      stdout: '5000 payloads would be sent.\n  Order intake: 5000\n  More match: send the others again afterwards.\n',
    })
    const twice = ['--where', 'outcome=rejected', '--where', 'outcome=timed_out']
    expect(await resend(...twice)).toMatchObject(failure('outcome is given twice', 2))
  })
})
