import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BenchOptions } from '../bench-options.ts'
import { createWorkflow } from '../customer.ts'
import { startEnvironment } from '../environment.ts'
import type { Figure } from '../figure.ts'
import { measureAlternately, pieceSeconds } from '../measure-alternately.ts'
import { requestsPerSecond } from '../requests-per-second.ts'
import { seedOrganization, seedWorkflows } from '../seed.ts'
import { singleRowCommitsPerSecond } from '../single-row-commits.ts'

const CONNECTIONS = 64

/** Measures reads and starts per second against a default Express 5 application that answers the same bytes. */
export async function measureApi(options: BenchOptions): Promise<Figure[]> {
  const environment = await startEnvironment(options)
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  try {
    const organization = await seedOrganization(environment.client)
    await seedWorkflows(environment.client, organization, 25)
    const gateway = await environment.startGateway()
    const headers = { authorization: `Bearer ${organization.apiKey}` }
    const get = async (path: string): Promise<unknown> => (await fetch(gateway.url + path, { headers })).json()
    const page = (await get('/v1/workflows')) as { data: { id: string }[] }
    // Different ids: the gateway answers simultaneous look-ups of the same workflow with one query.
    const workflowPaths = page.data.map(({ id }) => `/v1/workflows/${id}`)
    const bodies = {
      organization: await get('/v1/organization'),
      workflow: page.data[0],
      start: { id: crypto.randomUUID(), workflow_id: crypto.randomUUID(), session_id: crypto.randomUUID() },
    }
    const bodiesFile = join(folder, 'bodies.json')
    await writeFile(bodiesFile, JSON.stringify(bodies))
    const express = await environment.startScript('./baseline-server.ts', [bodiesFile])

    const load = { connections: CONNECTIONS, seconds: pieceSeconds(options) }
    const figures: Figure[] = []
    for (const [name, paths, expressPath, ratio] of [
      ['GET /v1/organization', ['/v1/organization'], '/get/organization', 0.8],
      ['GET /v1/workflows/{id}', workflowPaths, '/get/workflow', 0.4],
    ] as const) {
      options.logProgress(name)
      const { value, baselines } = await measureAlternately(
        options,
        () => requestsPerSecond({ ...load, url: gateway.url, paths, headers }),
        { express: () => requestsPerSecond({ ...load, url: express.url, paths: [expressPath], headers }) },
      )
      figures.push({
        name,
        value,
        unit: '/s',
        baseline: { name: 'Express 5', value: baselines.express },
        target: { kind: 'at least', ratio },
      })
    }

    options.logProgress('POST start')
    const workflowId = await createWorkflow(environment.client, organization.organizationId)
    const post = {
      ...load,
      method: 'POST' as const,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ context: '{"order_id": "A-1001", "total": 99.5}' }),
    }
    const { value, baselines } = await measureAlternately(
      options,
      () => requestsPerSecond({ ...post, url: `${gateway.url}/v1/workflows/${workflowId}/start` }),
      {
        express: () => requestsPerSecond({ ...post, url: `${express.url}/start` }),
        commits: () => singleRowCommitsPerSecond(environment.postgres.url, load.seconds),
      },
    )
    const start = { name: 'POST start, 202', value, unit: '/s', target: { kind: 'at least', ratio: 0.2 } } as const
    return [
      ...figures,
      { ...start, baseline: { name: 'Express 5 with ajv', value: baselines.express } },
      { ...start, baseline: { name: 'single-row commits', value: baselines.commits } },
    ]
  } finally {
    await environment.close()
    await rm(folder, { recursive: true, force: true })
  }
}
