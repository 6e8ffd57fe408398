import { randomUUID } from 'node:crypto'
import { startCustomerEndpoint, waitUntil } from '@workflow-service/testkit'
import got from 'got'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { wf } from './support/wf.ts'

const environment = useCliEnvironment()
let endpoint: Awaited<ReturnType<typeof startCustomerEndpoint>>
let organizationId: string
let sourceId: string

beforeEach(async () => {
  endpoint = await startCustomerEndpoint({ answer: { body: 'thank you' } })
  const manifest = { organization: { name: 'Acme' }, webhook_sources: [orderIntakeSource(endpoint.url)] }
  const json = (await environment.apply(manifest)) as { organization_id: string; webhook_sources: { id: string }[] }
  organizationId = json.organization_id
  sourceId = json.webhook_sources[0]?.id ?? ''
})
afterEach(async () => {
  await endpoint.close()
  await environment.clear()
})

async function send(payload: object): Promise<void> {
  await got.put(`${environment.env.DISPATCHER_URL}/internal/deliveries/${randomUUID()}`, {
    headers: { authorization: `Bearer ${environment.env['INTERNAL_API_TOKEN']}` },
    json: { organization_id: organizationId, source_id: sourceId, payload },
  })
}

const logs = async (...args: string[]) => await wf(environment.env, ['logs', 'order intake', ...args])
const entries = async (...args: string[]) =>
  (await logs(...args, '--json')).json() as { kind: string; outcome: string; request_body: unknown }[]

describe('wf logs', () => {
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
    expect(lines[4]).toMatch(/verification +accepted +200 /)
  })

  test('--answers shows what the endpoint answered to a request that it rejected, as text', async () => {
    endpoint.answerWith({ status: 422, body: 'no stock\nof \u001b[31mit' })
    await send({ order_id: 'A-3' })
    expect((await logs()).stdout).not.toContain('no stock')
    expect((await logs('--answers')).stdout).toMatch(/\n\n2\S+ \S+ {2}answered 422\n {2}no stock\n {2}of \[31mit\n$/)
    expect(await entries('--kind', 'payload')).toMatchObject([{ rejected_answer: 'no stock\nof [31mit' }])
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

  test('uses colours only on a terminal', async () => {
    expect((await logs()).stdout).not.toContain('\u001b')
    const coloured = await wf(environment.env, ['logs', 'order intake'], { isColoured: true })
    expect(coloured.stdout).toContain('\u001b[32maccepted\u001b[39m')
  })

  test('--follow prints each entry once, when it has its outcome, until Ctrl-C', async () => {
    await send({ order_id: 'A-2' })
    const interruption = new AbortController()
    let output = ''
    const following = wf(environment.env, ['logs', sourceId, '--follow', '--json'], {
      interrupted: interruption.signal,
      onWrite: (text) => (output += text),
    })
    const bodies = () =>
      output
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
    interruption.abort()
    expect(await following).toMatchObject({ exitStatus: 0 })
    expect(bodies()).toEqual([undefined, 'A-2', 'A-4', 'A-3'])
  })

  test('finds the log of a deleted source by its id', async () => {
    await environment.db.pool.query('UPDATE webhook_sources SET deleted_at = now()')
    expect(await logs()).toMatchObject({ exitStatus: 1 })
    expect(await wf(environment.env, ['logs', sourceId])).toMatchObject({ exitStatus: 0 })
  })

  test.each([
    ['--outcome', 'lost'],
    ['--kind', 'ping'],
    ['--since', 'later'],
    ['--limit', '0'],
  ])('exits with 2 on %s %s', async (option, value) => {
    expect(await logs(option, value)).toMatchObject({ exitStatus: 2 })
  })
})
