import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { MAX_RESENDS, newId } from '@workflow-service/database'
import {
  close,
  freePort,
  listen as listenOn,
  type RecordedRequest,
  startCustomerEndpoint,
  startRawEndpoint,
  waitUntil,
} from '@workflow-service/testkit'
import { setProcessClock } from '@workflow-service/testkit/set-process-clock'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { failure, waitUntilWatching, watchWf, wf } from './support/wf.ts'

type Endpoint = Awaited<ReturnType<typeof startCustomerEndpoint>>

const SECRET = 'the secret of the laptop'
const SOURCE_SECRET = 'the secret of the source'
const environment = useCliEnvironment()
let endpoint: Endpoint
let laptop: Endpoint
let sourceId: string
let savedAt: Date

beforeAll(async () => {
  endpoint = await startCustomerEndpoint()
  laptop = await startCustomerEndpoint()
  const source = orderIntakeSource(endpoint.url, { signing_secret: SOURCE_SECRET })
  const applied = await environment.apply({ organization: { name: 'Acme' }, webhook_sources: [source] })
  sourceId = (applied as { webhook_sources: { id: string }[] }).webhook_sources[0]!.id
  savedAt = new Date()
})
afterAll(async () => {
  await endpoint.close()
  await laptop.close()
})
beforeEach(async () => {
  // The log keeps the request that verified the source.
  await environment.db.prisma.delivery.deleteMany({ where: { createdAt: { gt: savedAt } } })
  endpoint.reset()
  laptop.reset()
  laptop.answerWith(checkToken)
})

const tokenOf = ({ headers }: RecordedRequest) => headers['x-service-token']
const checkToken = async (request: RecordedRequest, _index?: number, secret = SECRET) => ({
  status: (await checkServiceToken(tokenOf(request), secret)).ok ? 200 : 401,
})
const listen = async (...args: string[]) => await wf(environment.env, ['listen', `${laptop.url}/orders`, ...args])
const sources = async (...args: string[]) => await wf(environment.env, ['sources', ...args])
const send = async (payload: object, ...args: string[]) =>
  await wf(environment.env, ['sources', 'send', 'order intake', '--payload', '-', ...args], {
    input: JSON.stringify(payload),
  })
const rename = (from: string, to: string) => environment.db.pool.query(`ALTER TABLE ${from} RENAME TO ${to}`)
const logs = async (...args: string[]) => await wf(environment.env, ['logs', 'order intake', ...args])

test('wf sources list shows the name, the endpoint and whether requests are signed, never the secret', async () => {
  const { stdout } = await sources('list')
  expect(stdout).toMatch(new RegExp(`Order intake {2}[0-9a-f-]{36} {2}yes {5}\\d{4}-.* ${endpoint.url}/orders\n$`))
  const json = await sources('list', '--json')
  expect(json.json()).toMatchObject([
    { name: 'Order intake', has_signing_secret: true, example_request_body: { order_id: 'A-1' } },
  ])
  expect(stdout + json.stdout).not.toContain(SOURCE_SECRET)
})

test('wf sources pause and resume let payloads wait, and say so', async () => {
  const paused = await sources('pause', 'Order intake')
  expect(paused.stdout).toMatch(/^Order intake is paused\./)
  const json = () => sources('list', '--json')
  expect((await json()).json()).toMatchObject([{ paused_at: expect.any(String) }])
  const refused = await sources('send', 'Order intake')
  expect(refused).toMatchObject(failure('is paused: resume it first'))
  expect(await sources('resume', 'Order intake')).toMatchObject({
    stdout: 'Order intake is resumed: what waited is sent now.\n',
  })
  expect((await json()).json()).toMatchObject([{ paused_at: null }])
  expect(endpoint.requests).toHaveLength(0)

  await wf(environment.env, ['organizations', 'suspend', 'Acme'])
  expect(await sources('resume', 'Order intake')).toMatchObject({
    stdout: 'Order intake is resumed: what waited is sent once Acme is not suspended any more.\n',
  })
  await wf(environment.env, ['organizations', 'resume', 'Acme'])

  // What it says to do next is safe in a shell, also for such a name.
  const { prisma } = environment.db
  await prisma.webhookSource.updateMany({ data: { name: '$(echo Order) `intake`', nameKey: '$(echo order) `intake`' } })
  const { stdout } = await sources('pause', '$(echo Order) `intake`')
  const [, command = ''] = /until: wf (.+)\n$/.exec(stdout) ?? []
  const printed = execFileSync('sh', ['-c', `printf '%s\\n' ${command}`], { encoding: 'utf8' })
  expect(await wf(environment.env, printed.trimEnd().split('\n'))).toMatchObject({ exitStatus: 0 })
  await prisma.webhookSource.updateMany({ data: { name: 'Order intake', nameKey: 'order intake' } })
  expect((await json()).json()).toMatchObject([{ paused_at: null }])
})

describe('wf sources test', () => {
  test('sends one verification request for the stored source and shows the answer', async () => {
    const { exitStatus, stdout } = await sources('test', 'ORDER INTAKE')
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Confirmed\. Order intake answered with status 204 after \d+ ms\.\n$/)
    expect(endpoint.requests).toHaveLength(1)
    expect(endpoint.requests[0]?.json).toMatchObject({ data: { signing_secret: SOURCE_SECRET } })
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

describe('wf sources send', () => {
  test('sends the example as a payload through the dispatcher, signed and logged', async () => {
    endpoint.answerWith({ body: 'taken' })
    const { exitStatus, stdout } = await sources('send', 'order intake')
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Accepted\. Order intake answered with status 200 after .*\.\nIt answered "taken"\.\n$/)
    const request = endpoint.requests.at(-1)!
    expect(request.json).toEqual({ order_id: 'A-1' })
    expect(await checkServiceToken(tokenOf(request), SOURCE_SECRET)).toMatchObject({ ok: true })
    const logged = await logs('--limit', '1', '--json')
    expect(logged.json()).toMatchObject([{ kind: 'payload', request_body: { order_id: 'A-1' }, run_id: null }])
    const [{ id }] = logged.json() as [{ id: string }]
    const { rows } = await environment.db.pool.query(
      `SELECT actor_kind, target_name FROM audit_events WHERE action = 'webhook_source.tested' AND changes::text LIKE $1`,
      [`%${id}%`],
    )
    expect(rows).toEqual([{ actor_kind: 'operator', target_name: 'Order intake' }])
  })

  test('says that a payload was accepted also if that cannot be recorded in the audit log', async () => {
    endpoint.answerWith(async () => {
      await rename('audit_events', 'missing_events')
      return { status: 204 }
    })
    const { exitStatus, stdout, stderr } = await send({ order_id: 'A-1' })
    await rename('missing_events', 'audit_events')
    expect({ exitStatus, stdout }).toEqual({
      exitStatus: 0,
      stdout: expect.stringMatching(/^Accepted\. Order intake answered with status 204/),
    })
    expect(stderr).toMatch(/^Warning: The audit log does not have this payload\. .*the tables are missing/)
  })

  test('says where to see whether a payload was sent whose response is lost', async () => {
    const dispatcher = await startRawEndpoint((socket) => void socket.destroy())
    const env = { ...environment.env, DISPATCHER_URL: dispatcher.url }
    const { exitStatus, stderr } = await wf(env, ['sources', 'send', 'order intake'])
    await dispatcher.close()
    const advice = `Warning: If the dispatcher received the payload, it was sent: wf logs ${sourceId} shows it.\n`
    expect({ exitStatus, stderr }).toEqual({
      exitStatus: 1,
      stderr: expect.stringMatching(`^${advice}Error: The dispatcher at .* does not answer \\(ECONNRESET\\)`),
    })
  })

  test('exits with 1 and names what does not follow the example; nothing is sent then', async () => {
    const stdout = expect.stringMatching(/^Not accepted\. Order intake: .*order_id: is required/)
    expect(await send({ order: 'A-1' })).toMatchObject({ exitStatus: 1, stdout })
    expect(endpoint.requests).toHaveLength(0)
  })

  test.each([
    ['[1]', 'must have a JSON object'],
    ['{', 'is not JSON'],
  ])('rejects the file %s', async (content, message) => {
    const payload = await environment.writeFile('file.json', content)
    expect(await sources('send', 'order intake', '--payload', payload)).toMatchObject(failure(message))
  })
})

describe('wf listen', () => {
  test('sends the verification request with the headers of the dispatcher, without a database', async () => {
    await sources('test', 'Order intake')
    const real = endpoint.requests.at(-1)!
    const { exitStatus } = await wf({}, ['listen', `${laptop.url}/orders`, '--secret', SECRET, '--once'])
    expect(exitStatus).toBe(0)
    const [local] = laptop.requests
    expect(Object.keys(local?.headers ?? {})).toEqual(expect.arrayContaining(Object.keys(real.headers)))
    const headers = { 'user-agent': real.headers['user-agent'], 'content-type': 'application/json' }
    expect(local?.headers).toMatchObject(headers)
    expect(local?.json).toEqual({
      type: 'service.webhook.verification',
      organization_id: expect.any(String),
      source_id: expect.any(String),
      data: { target_url: `${laptop.url}/orders`, signing_secret: SECRET, body_example: { message: 'Hello' } },
    })
    expect(Object.keys(local?.json as object)).toEqual(Object.keys(real.json as object))
  })

  test('shows each request with its token checked, and whether wrong tokens are answered with 401', async () => {
    const { stdout } = await listen('--secret', SECRET, '--once')
    expect(stdout).toMatch(
      /✓ verification → 200 in .*\n[^]*X-Service-Token: \w+=* \(valid: signed with the secret at \d\d:/,
    )
    expect(stdout.match(/✓ verification with .* → 401/g)).toHaveLength(3)
    const results = await Promise.all(laptop.requests.map((request) => checkServiceToken(tokenOf(request), SECRET)))
    const reasons = results.map((check) => (check.ok ? 'valid' : check.reason))
    expect(reasons).toEqual(['valid', 'missing', 'wrong_signature', 'too_old'])
  })

  test('exits with 1 when the endpoint accepts wrong tokens', async () => {
    laptop.answerWith({ status: 204 })
    const { exitStatus, stdout } = await listen('--secret', SECRET, '--once')
    expect(exitStatus).toBe(1)
    expect(stdout).toContain('✗ verification with no token → 204')
    expect(stdout).toContain('Anyone could send this. Answer 401')
  })

  test('makes a secret and shows it, and repeats the verification until the endpoint confirms', async () => {
    laptop.answerWith({ status: 401 })
    const { output, ended } = watchWf({}, ['listen', `${laptop.url}/orders`])
    await waitUntil(() => output().includes('Give your endpoint this signing secret'))
    const [, secret] = /Signing secret +(\S{43})\n/.exec(output()) ?? []
    laptop.answerWith((request, index) => checkToken(request, index, secret))
    expect(await ended).toMatchObject({ exitStatus: 0 })
    expect(output().match(/verification → 401/g)).toHaveLength(1)
  })

  test('forwards each new payload of the source as a marked copy, and sends the example without a source', async () => {
    const args = ['listen', `${laptop.url}/orders`, '--secret', SECRET, '--source', 'order intake', '--json']
    const { output, interrupt } = watchWf(environment.env, args)
    await laptop.waitForRequests(4)
    await waitUntil(() => output().split('\n').length > 5)
    endpoint.answerWith({ status: 500 })
    const sent = (await send({ order_id: 'B-2' }, '--json')).json() as { id: string }
    await laptop.waitForRequests(5)
    await waitUntil(() => output().includes(sent.id))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    const copy = laptop.requests.at(-1)!
    expect(copy.json).toEqual({ order_id: 'B-2' })
    expect(copy.headers['x-copy-of']).toBe(sent.id)
    expect(await checkServiceToken(tokenOf(copy), SECRET)).toMatchObject({ ok: true })
    expect(output()).not.toContain(SOURCE_SECRET)
    const lines = output().trimEnd().split('\n')
    const copied = { kind: 'payload', copy_of: sent.id, status: 200, as_expected: true }
    expect(JSON.parse(lines.at(-1)!)).toMatchObject(copied)

    const example = await environment.writeFile('example.json', { order_id: 'C-3' })
    await listen('--secret', SECRET, '--example', example, '--once')
    expect(laptop.requests.at(-1)?.json).toEqual({ order_id: 'C-3' })
    expect(laptop.requests.at(-1)?.headers).not.toHaveProperty('x-copy-of')
  })

  test('names what is wrong with the endpoint or its address', async () => {
    const { exitStatus, stdout } = await wf({}, ['listen', `${await freePort()}/orders`, '--once'])
    expect(exitStatus).toBe(1)
    expect(stdout).toMatch(/localhost:\d+\/orders[^]*✗ verification → .*ECONNREFUSED/)
    for (const address of ['ftp://localhost', 'orders', '']) {
      expect(await wf({}, ['listen', address])).toMatchObject({ exitStatus: 2 })
    }
    const message = 'fetch refuses the port of http://localhost:6000/; use another one.'
    expect(await wf({}, ['listen', '6000'])).toMatchObject(failure(message, 2))
  })

  test('reads the start of an answer that has no end', async () => {
    const server = createServer((_incoming, response) => void response.write('x'.repeat(5_000)))
    const port = await listenOn(server)
    const startedMs = performance.now()
    const { stdout } = await wf({}, ['listen', String(port), '--once'])
    expect(stdout).toContain('✓ verification → 200')
    // The deadline of one verification request.
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    await close(server)
  })

  test('ends at once on Ctrl-C while the endpoint does not answer', async () => {
    let requests = 0
    const server = createServer(() => void (requests += 1))
    const port = await listenOn(server)
    const { output, interrupt } = watchWf({}, ['listen', String(port), '--secret', SECRET])
    await waitUntil(() => requests > 0)
    const startedMs = performance.now()
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect(output()).not.toContain('verification')
    await close(server)
  })
})

const entries = async (...args: string[]) =>
  (await logs(...args, '--json')).json() as { kind: string; outcome: string; request_body: unknown }[]

describe('wf logs', () => {
  beforeEach(() => endpoint.answerWith({ body: 'thank you' }))
  afterEach(() => void jest.useRealTimers())

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

  test('--follow prints the first entry also where the clock is ahead of the database', async () => {
    setProcessClock(3_600_000)
    const args = ['logs', sourceId, '--follow', '--json', '--kind', 'payload']
    const { output, interrupt } = watchWf(environment.env, args)
    await waitUntilWatching(environment.db, 'deliveries')
    await send({ order_id: 'A-5' })
    await waitUntil(() => output().includes('A-5'))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
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
    await endpoint.waitForRequests(2)
    await send({ order_id: 'A-4' })
    await waitUntil(() => bodies().includes('A-4'))
    answerNow({ status: 200 })
    await slow
    await waitUntil(() => bodies().includes('A-3'))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    expect(bodies()).toEqual([undefined, 'A-2', 'A-4', 'A-3'])
  })

  test.each(['--json', '--json --outcome timed_out'])(
    '--follow %s prints what ends late, also beside later entries that have ended before',
    async (options) => {
      /** A payload of so many seconds ago. Resolves to what gives it an outcome. */
      const record = async (orderId: string, secondsAgo: number) => {
        const { rows } = await environment.db.pool.query<{ id: string }>(
          `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, request_id, created_at)
             SELECT gen_random_uuid(), organization_id, id, 'payload', 'in_flight', $2, 'r', now() - $3 * interval '1 s'
             FROM webhook_sources WHERE id = $1 RETURNING id`,
          [sourceId, { order_id: orderId }, secondsAgo],
        )
        return async (outcome: string) => {
          const update = 'UPDATE deliveries SET outcome = $2, finished_at = now() WHERE id = $1'
          await environment.db.pool.query(update, [rows[0]?.id, outcome])
        }
      }
      const endSlow = await record('A-6', 25)
      const endOther = await record('A-7', 12)
      await endOther('accepted')
      const endNext = await record('A-8', 2)
      const args = ['logs', sourceId, '--follow', ...options.split(' ')]
      const { output, interrupt } = watchWf(environment.env, args)
      await waitUntilWatching(environment.db, 'deliveries')
      await endNext('timed_out')
      await waitUntil(() => output().includes('A-8'))
      await endSlow('timed_out')
      await waitUntil(() => output().includes('A-6'))
      await interrupt()
      expect(output().match(/A-[678]/g)).toEqual([...(options === '--json' ? ['A-7'] : []), 'A-8', 'A-6'])
      // Older than what is deleted before each test.
      await environment.db.pool.query(`DELETE FROM deliveries WHERE request_id = 'r'`)
    },
  )
})

const resend = (...args: string[]) => wf(environment.env, ['deliveries', 'resend', ...args])

test('wf deliveries resend shows what would be sent, and starts a job for what meets all conditions', async () => {
  endpoint.answerWith({ status: 500 })
  await send({ order_id: 'R-1' })
  const where = ['--where', 'source=Order intake', '--where', 'status=500', '--where', 'search=R-1']
  const preview = await resend(...where, '--dry-run')
  expect(preview.stdout).toBe('1 payload would be sent.\n  Order intake: 1\n')
  const id = newId()
  const started = await resend(...where, '--rate', '5', '--id', id, '--json')
  expect(started.json()).toMatchObject({ id, status: 'running', total: 1, per_second: 5, created_by: 'operator' })
  await environment.db.prisma.delivery.deleteMany()
  // What was sent may have been deleted because of its age.
  expect((await logs()).stdout).toBe('The log of Order intake is empty.\n')
  expect((await logs('--kind', 'payload')).stdout).toBe(
    'The log of Order intake has nothing that matches the options.\n',
  )
  expect((await resend(...where, '--id', id, '--json')).json()).toEqual(started.json())
  expect(await resend(...where.slice(0, 4), '--where', 'search=R-2')).toMatchObject({ stdout: '0 payloads.\n' })
  expect((await resend()).exitStatus).toBe(1)
  expect((await resend('--where', 'colour=red')).exitStatus).toBe(2)
  expect(await resend('--where', 'since=later')).toMatchObject(failure('It must be a time', 2))
  expect(await resend('--where', 'search=')).toMatchObject(failure('It must be FIELD=VALUE', 2))
  for (const wrong of ['attention=true', 'outcome=lost', 'status=5']) {
    expect(await resend('--where', wrong)).toMatchObject(failure(`argument '${wrong}' is invalid. It must be`, 2))
  }
  const period = ['--where', 'since=1h', '--where', 'until=2h']
  expect(await resend(...period)).toMatchObject(
    failure(/: since \(.*\) must be before until \(.*\): nothing is in between/, 2),
  )
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

test('wf deliveries resend with the id of an earlier job says how far that is, and not what matches now', async () => {
  endpoint.answerWith({ status: 500 })
  await send({ order_id: 'I-1' })
  const args = ['--where', 'search=I-1', '--id', newId()]
  expect((await resend(...args)).stdout).toMatch(/^Sending 1 payload again as job .*\n {2}Order intake: 1\n$/)
  await environment.db.pool.query(`UPDATE resend_jobs SET status = 'done', done = 1, finished_at = now()`)
  for (let n = 0; n < 2; n += 1) await send({ order_id: 'I-1' })
  expect(await resend(...args)).toMatchObject({
    exitStatus: 0,
    stdout: `Job ${args.at(-1)} was created before, and nothing is added to it: done, 1 of 1 payload.\n`,
  })
})

// Last: they change the stored key, and delete the source.
const rotate = async (secretsKey: string) =>
  await wf({ ...environment.env, SECRETS_KEY: secretsKey }, ['secrets', 'rotate', '--json'])
const newKey = () => randomBytes(32).toString('base64')

test('wf secrets rotate encrypts every secret with the first key, and exits with 1 and names each one whose key is not listed', async () => {
  const next = newKey()
  const failed = await rotate(next)
  expect(failed.exitStatus).toBe(1)
  expect(failed.json()).toMatchObject({ rotated: 0, failed: [{ reason: expect.stringMatching(/does not list/) }] })
  const id = newId()
  await environment.db.pool.query(
    `INSERT INTO model_keys (id, organization_id, model, key, last_characters, saved_by_name)
     SELECT $1, organization_id, 'm', signing_secret, '', '' FROM webhook_sources`,
    [id],
  )
  const env = { ...environment.env, SECRETS_KEY: next }
  const { stdout } = await wf(env, ['secrets', 'rotate'])
  expect(stdout).toMatch(
    new RegExp(`^ORGANIZATION +KIND +ID +REASON\n.* webhook source +${sourceId} +The secret is`, 'm'),
  )
  expect(stdout).toMatch(
    new RegExp(` model key +${id} +The secret is encrypted with key .*, which SECRETS_KEY does not`),
  )
  const both = await rotate(`${next},${environment.env.SECRETS_KEY}`)
  const copied = {
    organization_id: expect.any(String),
    kind: 'model_key',
    id,
    reason: expect.stringContaining('damaged'),
  }
  expect(both.json()).toEqual({ rotated: 1, current: 0, failed: [copied] })
  await environment.db.pool.query('DELETE FROM model_keys')
  expect((await rotate(next)).json()).toEqual({ rotated: 0, current: 1, failed: [] })
})

test('wf logs of a deleted source is found by the id', async () => {
  await environment.db.pool.query('UPDATE webhook_sources SET deleted_at = now()')
  expect(await logs()).toMatchObject({ exitStatus: 1 })
  expect(await wf(environment.env, ['logs', sourceId])).toMatchObject({ exitStatus: 0 })
})
