import { readFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createSignedInUser } from '../../packages/testkit/src/index.ts'
import { untilAllEnded } from '../trials/shared/callers.ts'
import {
  apiHeadersOf,
  createOrganization,
  createWorkflow,
  type Organization,
  saveSource,
  startWorkflow,
} from '../trials/shared/customers.ts'
import { send } from '../trials/shared/load.ts'
import { type Service, type ServiceName, startTestSystem, type System } from '../trials/shared/system.ts'
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
  const stack = new AsyncDisposableStack()
  let folder: string
  let system: System
  let organization: Organization
  let workflowId: string
  let sourceId: string
  let gateway: Service
  let runner: Service
  let app: Service

  const startReleased = async (name: ServiceName): Promise<Service> =>
    await system.start(name, { program: [join(folder, 'services', name, 'src/main.ts')] })

  /** Starts the workflow at a gateway, and resolves to the end of its run. */
  const run = async ({ url }: Service, text: string): Promise<{ status: string | undefined; arrived: number }> => {
    const id = await startWorkflow(url, { ...organization, workflowId }, text)
    await untilAllEnded(system, 30_000)
    const { rows } = await system.pool.query<{ status: string }>('SELECT status FROM starts WHERE id = $1', [id])
    const arrived = system.receiver.arrivals.filter((arrival) => arrival.text === text).length
    return { status: rows[0]?.status, arrived }
  }

  beforeAll(async () => {
    folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'workflow-service-release-'))).path
    await extractRelease(commit, folder)
    system = stack.use(await startTestSystem({ answer: () => ({ status: 204 }) }))
    organization = await createOrganization(system)
    workflowId = await createWorkflow(system, organization, 'Post to Order intake.')
    await startReleased('dispatcher')
    ;[gateway, app, runner] = await Promise.all([
      startReleased('gateway'),
      startReleased('app'),
      startReleased('runner'),
    ])
  })
  afterAll(() => stack.disposeAsync())

  test('saves a webhook source, executes a start, and sends its payload', async () => {
    const source = { name: 'Order intake', endpointUrl: system.receiver.url, example: { text: 'x' } }
    const saved = await saveSource(system, organization, source)
    sourceId = saved.sourceId
    // The verification.
    expect([saved.status, system.receiver.arrivals.length]).toEqual([201, 1])
    expect(await run(gateway, 'first')).toEqual({ status: 'succeeded', arrived: 1 })
  })

  test('reads from the public API, the application and the delivery log', async () => {
    const { headers: person } = await createSignedInUser(system.pool, organization.organizationId)
    const api = apiHeadersOf(organization)
    expect(await getJson(`${gateway.url}/v1/workflows`, api)).toMatchObject({ data: [{ id: workflowId }] })
    expect(await getJson(`${gateway.url}/v1/workflows/${workflowId}`, api)).toMatchObject({ name: 'Trial' })
    const deliveries = `webhook-sources/${sourceId}/deliveries`
    for (const list of ['overview', 'workflows', 'runs', 'sessions', 'audit-events', deliveries])
      expect(await getJson(`${app.url}/app/${list}`, person)).toEqual(expect.any(Object))
  })

  test('works beside the new release: each executes what the other accepts', async () => {
    const newGateway = await system.start('gateway')
    expect(await run(newGateway, 'accepted by the new gateway')).toEqual({ status: 'succeeded', arrived: 1 })
    await Promise.all([system.start('runner'), runner.kill('SIGTERM')])
    expect(await run(gateway, 'executed by the new runner')).toEqual({ status: 'succeeded', arrived: 1 })
  })
})

async function getJson(url: string, headers: Record<string, string>): Promise<unknown> {
  return JSON.parse(await send(url, { headers }))
}
