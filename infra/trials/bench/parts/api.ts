import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { apiHeadersOf, createOrganization, createWorkflow } from '../../shared/customers.ts'
import { send } from '../../shared/load.ts'
import { seedWorkflows } from '../../shared/seed.ts'
import { startSystem } from '../../shared/system.ts'
import { requestsPerSecond, singleRowCommitsPerSecond } from '../baselines.ts'
import { atLeast, type BenchOptions, compare, type Figure, measureAlternately, pieceSeconds } from '../figure.ts'

const CONNECTIONS = 64
const START = { method: 'POST' as const, body: JSON.stringify({ context: '{"order_id": "A-1001", "total": 99.5}' }) }

/** Measures reads and starts per second against a default Express 5 application that answers the same bytes. */
export async function measureApi(options: BenchOptions): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const { path: folder } = stack.use(await mkdtempDisposable(join(tmpdir(), 'bench-')))
  const system = stack.use(await startSystem(options))
  const organization = await createOrganization(system)
  await seedWorkflows(system, organization, 25)
  const gateway = await system.start('gateway')
  const headers = apiHeadersOf(organization)
  const get = async (path: string): Promise<unknown> => JSON.parse(await send(gateway.url + path, { headers }))
  const page = (await get('/v1/workflows')) as { data: { id: string }[] }
  const bodies = {
    organization: await get('/v1/organization'),
    workflow: page.data[0],
    start: { id: crypto.randomUUID(), workflow_id: crypto.randomUUID(), session_id: crypto.randomUUID() },
  }
  const bodiesFile = join(folder, 'bodies.json')
  await writeFile(bodiesFile, JSON.stringify(bodies))
  const expressUrl = await system.startScript(import.meta.resolve('../baseline-server.ts'), [bodiesFile])

  const load = { connections: CONNECTIONS, seconds: pieceSeconds(options), headers }
  const measureGet = async (name: string, paths: readonly string[], expressPath: string, ratio: number) => {
    options.log(name)
    const measured = await measureAlternately(options, {
      express: () => requestsPerSecond({ ...load, url: expressUrl, paths: [expressPath] }),
      service: () => requestsPerSecond({ ...load, url: gateway.url, paths }),
    })
    return compare(name, measured.service, '/s', ['Express 5', measured.express], atLeast(ratio))
  }
  const organizations = await measureGet('GET /v1/organization', ['/v1/organization'], '/get/organization', 0.8)
  // Different ids: the gateway answers simultaneous look-ups of the same workflow with one query.
  const paths = page.data.map(({ id }) => `/v1/workflows/${id}`)
  const workflows = await measureGet('GET /v1/workflows/{id}', paths, '/get/workflow', 0.4)

  options.log('POST start')
  const workflowId = await createWorkflow(system, organization, 'Post to Order intake.')
  const {
    express: posts,
    commits,
    starts,
  } = await measureAlternately(options, {
    express: () => requestsPerSecond({ ...load, ...START, url: `${expressUrl}/start` }),
    commits: () => singleRowCommitsPerSecond(system.postgres.url, load.seconds),
    starts: () => requestsPerSecond({ ...load, ...START, url: `${gateway.url}/v1/workflows/${workflowId}/start` }),
  })
  return [
    organizations,
    workflows,
    compare('POST start, 202', starts, '/s', ['Express 5 with ajv', posts], atLeast(0.2)),
    compare('POST start, 202', starts, '/s', ['single-row commits', commits], atLeast(0.2)),
  ]
}
