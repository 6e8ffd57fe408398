import { createServer } from 'node:http'
import {
  close,
  freePort,
  listen as listenOn,
  type RecordedRequest,
  startCustomerEndpoint,
  waitUntil,
} from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { failure, watchWf, wf } from './support/wf.ts'

type Endpoint = Awaited<ReturnType<typeof startCustomerEndpoint>>

const SECRET = 'the secret of the laptop'
const SOURCE_SECRET = 'the secret of the source'
const environment = useCliEnvironment()
let sourceEndpoint: Endpoint
let laptop: Endpoint

beforeAll(async () => {
  sourceEndpoint = await startCustomerEndpoint()
  laptop = await startCustomerEndpoint()
  const source = orderIntakeSource(sourceEndpoint.url, { signing_secret: SOURCE_SECRET })
  await environment.apply({ organization: { name: 'Acme' }, webhook_sources: [source] })
}, 60_000)
afterAll(async () => {
  await sourceEndpoint.close()
  await laptop.close()
})
beforeEach(() => {
  laptop.requests.length = 0
  laptop.answerWith(checkToken)
  sourceEndpoint.answerWith({ body: 'taken' })
})

const tokenOf = ({ headers }: RecordedRequest) => headers['x-service-token']
const checkToken = async (request: RecordedRequest, _index?: number, secret = SECRET) => ({
  status: (await checkServiceToken(tokenOf(request), secret)).ok ? 200 : 401,
})
const listen = async (...args: string[]) => await wf(environment.env, ['listen', `${laptop.url}/orders`, ...args])
const send = async (...args: string[]) => await wf(environment.env, ['sources', 'send', 'order intake', ...args])

describe('wf listen', () => {
  test('sends the verification request with the headers of the dispatcher, without a database', async () => {
    await wf(environment.env, ['sources', 'test', 'Order intake'])
    const real = sourceEndpoint.requests.at(-1)!
    const { exitStatus } = await wf({}, ['listen', `${laptop.url}/orders`, '--secret', SECRET, '--once'])
    expect(exitStatus).toBe(0)
    const [local] = laptop.requests
    expect(Object.keys(local?.headers ?? {})).toEqual(expect.arrayContaining(Object.keys(real.headers)))
    expect(local?.headers).toMatchObject({
      'user-agent': real.headers['user-agent'],
      'content-type': 'application/json',
    })
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
    expect(results.map((check) => (check.ok ? 'valid' : check.reason))).toEqual([
      'valid',
      'missing',
      'wrong_signature',
      'too_old',
    ])
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
    sourceEndpoint.answerWith({ status: 500 })
    const payload = await environment.writeFile('payload.json', { order_id: 'B-2' })
    const sent = (await send('--payload', payload, '--json')).json() as { id: string }
    await laptop.waitForRequests(5)
    await waitUntil(() => output().includes(sent.id))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    const copy = laptop.requests.at(-1)!
    expect(copy.json).toEqual({ order_id: 'B-2' })
    expect(copy.headers['x-copy-of']).toBe(sent.id)
    expect(await checkServiceToken(tokenOf(copy), SECRET)).toMatchObject({ ok: true })
    expect(output()).not.toContain(SOURCE_SECRET)
    const lines = output().trimEnd().split('\n')
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      kind: 'payload',
      copy_of: sent.id,
      status: 200,
      as_expected: true,
    })

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
    expect(await wf({}, ['listen', '6000'])).toMatchObject(
      failure('fetch refuses the port of http://localhost:6000/; use another one.', 2),
    )
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
})

describe('wf sources send', () => {
  test('sends the example as a payload through the dispatcher, signed and logged', async () => {
    const { exitStatus, stdout } = await send()
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Accepted\. Order intake answered with status 200 after .*\.\nIt answered "taken"\.\n$/)
    const request = sourceEndpoint.requests.at(-1)!
    expect(request.json).toEqual({ order_id: 'A-1' })
    expect(await checkServiceToken(tokenOf(request), SOURCE_SECRET)).toMatchObject({ ok: true })
    const logged = await wf(environment.env, ['logs', 'order intake', '--limit', '1', '--json'])
    expect(logged.json()).toMatchObject([{ kind: 'payload', request_body: { order_id: 'A-1' }, run_id: null }])
    const [{ id }] = logged.json() as [{ id: string }]
    const { rows } = await environment.db.pool.query(
      `SELECT actor_kind, target_name FROM audit_events WHERE action = 'webhook_source.tested' AND changes::text LIKE $1`,
      [`%${id}%`],
    )
    expect(rows).toEqual([{ actor_kind: 'operator', target_name: 'Order intake' }])
  })

  test('exits with 1 and names what does not follow the example; nothing is sent then', async () => {
    const before = sourceEndpoint.requests.length
    const payload = await environment.writeFile('wrong.json', { order: 'A-1' })
    expect(await send('--payload', payload)).toMatchObject({
      exitStatus: 1,
      stdout: expect.stringMatching(/^Not accepted\. Order intake: .*order_id: is required/),
    })
    expect(sourceEndpoint.requests).toHaveLength(before)
  })

  test.each([
    ['[1]', 'must have a JSON object'],
    ['{', 'is not JSON'],
  ])('rejects the file %s', async (content, message) => {
    const payload = await environment.writeFile('file.json', content)
    expect(await send('--payload', payload)).toMatchObject(failure(message))
  })
})
