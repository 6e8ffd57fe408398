import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBed } from '../bed.ts'
import { makeWorkflow } from '../customer.ts'
import type { Figure } from '../figure.ts'
import { commitsPerSecond } from '../limits.ts'
import { requestsPerSecond } from '../load.ts'
import { inTurn, type Measuring, pieceSeconds } from '../run-context.ts'
import { seedOrganization, seedWorkflows } from '../seed.ts'

const CONNECTIONS = 64

/** Reads and starts per second, against a default Express 5 application that answers the same bytes. */
export async function measureApi(measuring: Measuring): Promise<Figure[]> {
  const bed = await createBed(measuring)
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  try {
    const seeded = await seedOrganization(bed.client)
    await seedWorkflows(bed.client, seeded, 25)
    const gateway = await bed.gateway()
    const headers = { authorization: `Bearer ${seeded.apiKey}` }
    const get = async (path: string): Promise<unknown> => (await fetch(gateway.url + path, { headers })).json()
    const page = (await get('/v1/workflows')) as { data: { id: string }[] }
    // As many as a page has: look-ups of one and the same would be answered together.
    const workflowPaths = page.data.map(({ id }) => `/v1/workflows/${id}`)
    const bodies = {
      organization: await get('/v1/organization'),
      workflow: page.data[0],
      start: { id: crypto.randomUUID(), workflow_id: crypto.randomUUID(), session_id: crypto.randomUUID() },
    }
    const bodiesFile = join(folder, 'bodies.json')
    await writeFile(bodiesFile, JSON.stringify(bodies))
    const limits = await bed.helper('./limit-server.ts', [bodiesFile])

    const load = { connections: CONNECTIONS, seconds: pieceSeconds(measuring) }
    const figures: Figure[] = []
    for (const [name, paths, limitPath, ratio] of [
      ['GET /v1/organization', ['/v1/organization'], '/get/organization', 0.8],
      ['GET /v1/workflows/{id}', workflowPaths, '/get/workflow', 0.4],
    ] as const) {
      measuring.say(name)
      const measured = await inTurn(measuring, () => requestsPerSecond({ ...load, url: gateway.url, paths, headers }), {
        express: () => requestsPerSecond({ ...load, url: limits.url, paths: [limitPath], headers }),
      })
      figures.push({
        name,
        value: measured.value,
        unit: '/s',
        limit: { name: 'Express 5', value: measured.limits.express },
        reach: { kind: 'at least', ratio },
      })
    }

    measuring.say('POST start')
    const workflowId = await makeWorkflow(bed.client, seeded.organizationId)
    const post = {
      ...load,
      method: 'POST' as const,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ context: '{"order_id": "A-1001", "total": 99.5}' }),
    }
    const { value, limits: starts } = await inTurn(
      measuring,
      () => requestsPerSecond({ ...post, url: `${gateway.url}/v1/workflows/${workflowId}/start` }),
      {
        express: () => requestsPerSecond({ ...post, url: `${limits.url}/start` }),
        commits: () => commitsPerSecond(bed.postgres.url, load.seconds),
      },
    )
    const start = { name: 'POST start, 202', value, unit: '/s', reach: { kind: 'at least', ratio: 0.2 } } as const
    return [
      ...figures,
      { ...start, limit: { name: 'Express 5 with ajv', value: starts.express } },
      { ...start, limit: { name: 'single-row commits', value: starts.commits } },
    ]
  } finally {
    await bed.close()
    await rm(folder, { recursive: true, force: true })
  }
}
