import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, newId } from '../../packages/database/src/index.ts'
import { applyManifests, toManifest } from '../../packages/database/src/manifest/index.ts'
import {
  forwardManifest,
  createSignedInUser,
  createTestBroker,
  createTestDatabase,
  type CustomerEndpoint,
  startCustomerEndpoint,
  startProcess,
  waitUntil,
} from '../../packages/testkit/src/index.ts'
import { extractRelease, hasCommit } from './extract-release.ts'

const root = join(import.meta.dirname, '../..')
const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
const [, version, commit = ''] = /^## \[(\d+\.\d+\.\d+)\][^\n]*\n+Commit `([0-9a-f]{40})`/m.exec(changelog) ?? []

test.each(['package.json', 'packages/cli/package.json'])('%s has the version of the last release', (file) => {
  const { version: written } = JSON.parse(readFileSync(join(root, file), 'utf8')) as { version: string }
  expect(written).toBe(version)
})

const isInClone = await hasCommit(commit)
if (!isInClone) {
  process.stderr.write(
    `\nNOT TESTED: whether release ${version} works with the new schema. Commit ${commit} is not in this clone; "git fetch --unshallow" gets it.\n\n`,
  )
}
const describeWithRelease = isInClone ? describe : describe.skip

describeWithRelease('the previous release, on a database that is migrated to the present schema', () => {
  const token = randomBytes(24).toString('hex')
  const secretsKey = randomBytes(32).toString('base64')
  const [organizationId, sourceId] = [newId(), newId()]
  const stops: (() => Promise<unknown>)[] = []
  let folder: string
  let env: Record<string, string>
  let db: Database
  let endpoint: CustomerEndpoint
  let workflowId: string
  let apiKey: string
  let gatewayUrl: string
  let appUrl: string
  let runner: RunningService

  const start = async (release: string, name: string, more: Record<string, string> = {}): Promise<RunningService> => {
    const started = await startProcess({
      args: [join(release, 'services', name, 'src/main.ts')],
      env: { ...env, ...more },
      readyWhen: { line: /"msg":"(service.started|listening|running)"/ },
      timeoutMs: 60_000,
    })
    stops.push(() => started.stop())
    const line = started.jsonLines.find(({ url }) => url !== undefined)
    return { url: String(line?.['url']), stop: () => started.stop() }
  }

  /** Starts the workflow at a gateway, and resolves to the end of its run. */
  const run = async (url: string, text: string): Promise<{ status: string; arrived: number }> => {
    const answer = await fetch(`${url}/v1/workflows/${workflowId}/start`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ context: `message: ${text}` }),
    })
    const { id } = (await answer.json()) as { id: string }
    expect(answer.status).toBe(202)
    let status = ''
    await waitUntil(
      async () => {
        const { rows } = await db.pool.query<{ status: string }>('SELECT status FROM starts WHERE id = $1', [id])
        status = rows[0]?.status ?? ''
        return ['succeeded', 'failed'].includes(status)
      },
      { timeoutMs: 30_000 },
    )
    const arrived = endpoint.requests.filter(({ json }) => (json as { message?: string }).message === text).length
    return { status, arrived }
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'workflow-service-release-'))
    stops.push(() => rm(folder, { recursive: true }))
    const [database, broker] = await Promise.all([
      createTestDatabase(),
      createTestBroker(),
      extractRelease(commit, folder),
    ])
    endpoint = await startCustomerEndpoint()
    db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 3 })
    stops.push(
      () => database.drop(),
      () => broker.drop(),
      () => endpoint.close(),
      () => db.close(),
    )
    env = {
      DATABASE_URL: database.url,
      AMQP_URL: broker.url,
      HOST: '127.0.0.1',
      PORT: '0',
      METRICS_PORT: '0',
      INTERNAL_API_TOKEN: token,
    }
    const dispatcherEnv = { SECRETS_KEY: secretsKey, WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8' }
    const dispatcher = await start(folder, 'dispatcher', dispatcherEnv)
    env['DISPATCHER_URL'] = dispatcher.url
    const gateway = start(folder, 'gateway')
    const app = start(folder, 'app')
    runner = await start(folder, 'runner')
    gatewayUrl = (await gateway).url
    appUrl = (await app).url
    const [applied] = await applyManifests(db, [
      toManifest(forwardManifest(organizationId, { description: 'Post to Order intake.' })),
    ])
    workflowId = applied?.workflows[0]?.id ?? ''
    apiKey = applied?.apiKeys[0]?.key ?? ''
  }, 300_000)

  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop()
  }, 120_000)

  test('saves a webhook source, executes a start, and sends its payload', async () => {
    const saved = await fetch(
      `${env['DISPATCHER_URL']}/internal/organizations/${organizationId}/webhook-sources/${sourceId}`,
      {
        method: 'PUT',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          name: 'Order intake',
          description: 'Accepts any message.',
          endpoint_url: `${endpoint.url}/orders`,
          example_request_body: { message: 'text' },
        }),
      },
    )
    expect([saved.status, endpoint.requests.length]).toEqual([201, 1])
    expect(await run(gatewayUrl, 'first')).toEqual({ status: 'succeeded', arrived: 1 })
  }, 60_000)

  test('reads from the public API, the application and the delivery log', async () => {
    const { cookie } = await createSignedInUser(db.pool, organizationId)
    const api = { authorization: `Bearer ${apiKey}` }
    const person = { cookie: `${cookie.name}=${cookie.value}` }
    expect(await getJson(`${gatewayUrl}/v1/workflows`, api)).toMatchObject({ data: [{ id: workflowId }] })
    expect(await getJson(`${gatewayUrl}/v1/workflows/${workflowId}`, api)).toMatchObject({ name: 'Forward' })
    const lists = [
      'overview',
      'workflows',
      'runs',
      'sessions',
      'audit-events',
      `webhook-sources/${sourceId}/deliveries`,
    ]
    for (const list of lists) expect(await getJson(`${appUrl}/app/${list}`, person)).toEqual(expect.any(Object))
  })

  test('works beside the new release: each executes what the other accepts', async () => {
    const newGateway = await start(root, 'gateway')
    expect(await run(newGateway.url, 'accepted by the new gateway')).toEqual({ status: 'succeeded', arrived: 1 })
    await Promise.all([start(root, 'runner'), runner.stop()])
    expect(await run(gatewayUrl, 'executed by the new runner')).toEqual({ status: 'succeeded', arrived: 1 })
  }, 60_000)
})

interface RunningService {
  /** Of its API; a runner has none. */
  readonly url: string
  stop(): Promise<unknown>
}

async function getJson(url: string, headers: Record<string, string>): Promise<unknown> {
  const answer = await fetch(url, { headers })
  expect([url, answer.status]).toEqual([url, 200])
  return await answer.json()
}
