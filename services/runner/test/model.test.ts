import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from '@jest/globals'
import type { RunDetails } from '@workflow-service/database'
import {
  type ModelAnswer,
  type ModelRequest,
  type ModelTurn,
  type StubModelServer,
  waitUntil,
} from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { callTool, end } from './support/model-agent.ts'
import {
  type AcceptedStart,
  MODEL_TIMING,
  NEVER_MS,
  type TestOrganization,
  useRunnerFixture,
} from './support/runner-fixture.ts'

const RUNS = 3

const fixture = useRunnerFixture()
let acme: TestOrganization
let server: StubModelServer
beforeEach(async () => {
  acme = await fixture.createOrganization()
})
const startModelServer = useStubModel()

/** Sends the number of the run's order, then ends the run. */
function answer({ body }: ModelRequest): ModelAnswer {
  const text = JSON.stringify(body)
  const [, number = ''] = /order (\d+)/u.exec(text) ?? []
  return text.includes('Accepted') ? end() : callTool('send_to_order_intake', { message: number })
}

/** Starts the model, and gives the settings of its runners. */
async function startModel(otherwise: ModelTurn): Promise<Record<string, string>> {
  server = await startModelServer({ otherwise })
  return { AGENT_MODEL: 'openai-compatible:stub', AGENT_BASE_URL: server.baseUrl }
}

async function startRuns(): Promise<AcceptedStart[]> {
  const starts: AcceptedStart[] = []
  for (let n = 0; n < RUNS; n += 1) starts.push(await fixture.start(acme, { context: `order ${n}` }))
  return starts
}

/** Waits until all runs have ended, and expects that each has succeeded and sent its payload once. */
async function expectAllSent(starts: readonly AcceptedStart[]): Promise<RunDetails[]> {
  const runs = await waitUntil(
    async () => {
      const unfinished = await fixture.db.prisma.start.count({ where: { status: { in: ['queued', 'running'] } } })
      return unfinished === 0 ? await Promise.all(starts.map(({ startId }) => fixture.run(startId))) : undefined
    },
    { timeoutMs: NEVER_MS, message: `${RUNS} runs to end` },
  )
  expect(runs.filter(({ status }) => status !== 'succeeded').map(({ error }) => error)).toEqual([])
  const received = acme.endpoint.requests.map(({ json }) => Number((json as { message: string }).message))
  expect(received.toSorted((a, b) => a - b)).toEqual(Array.from({ length: RUNS }, (_, n) => n))
  return runs
}

describe('runs with a model', () => {
  test(
    'on two runners all succeed while the model allows 2 requests/s',
    async () => {
      const answeredAt: number[] = []
      const env = await startModel((request) => {
        const lastSecond = answeredAt.filter((time) => time > request.receivedAt - 1_000)
        if (lastSecond.length >= 2) return { failure: 'status', status: 429, retryAfterSeconds: 1 }
        answeredAt.push(request.receivedAt)
        return answer(request)
      })
      await Promise.all([1, 2].map(() => fixture.startRunner({ timing: MODEL_TIMING }, env)))
      const runs = await expectAllSent(await startRuns())
      expect(runs.every(({ attempts }) => attempts === 1)).toBe(true)
    },
    NEVER_MS,
  )

  test('have the model that their workflow chooses, of those that the runner offers to people', async () => {
    server = await startModelServer({ otherwise: () => end('nothing_to_do') })
    const path = join(mkdtempSync(join(tmpdir(), 'models-')), 'models.json')
    const model = {
      model: 'openai-compatible:large',
      base_url: server.baseUrl,
      data_region: 'eu',
      reads: ['pdf'],
      fallback: 'small',
    }
    const models = { large: model, small: { ...model, model: 'openai-compatible:small', fallback: undefined } }
    writeFileSync(path, JSON.stringify({ default: 'large', models }))
    await fixture.startRunner({ timing: MODEL_TIMING }, { AGENT_MODELS: path })
    await fixture.db.prisma.workflow.update({ where: { id: acme.workflowId }, data: { model: 'small' } })
    await fixture.waitForRuns([await fixture.start(acme, { context: 'order 1' })])
    expect(server.requests.map(({ body }) => (body as { model: string }).model)).toEqual(['small'])
    const offered = await waitUntil(async () => {
      const { rows } = await fixture.db.pool.query<{ name: string }>('SELECT * FROM models ORDER BY name')
      return rows.some(({ name }) => name === 'large') ? rows : undefined
    })
    expect(offered).toMatchObject([
      { name: 'builtin', model: 'builtin', is_default: false },
      {
        name: 'large',
        model: 'openai-compatible:large',
        is_default: true,
        data_region: 'eu',
        fallback: 'small',
        reads: ['pdf'],
      },
      { name: 'small', model: 'openai-compatible:small', is_default: false, organization_ids: [] },
    ])
  }, 60_000)
})
