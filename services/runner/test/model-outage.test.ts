import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { showSession } from '@workflow-service/database'
import {
  type ModelAnswer,
  type ModelRequest,
  type ModelTurn,
  startStubModelServer,
  type StubModelServer,
  waitUntil,
} from '@workflow-service/testkit'
import {
  type AcceptedStart,
  FAST_TIMING,
  NEVER_MS,
  type TestOrganization,
  useRunnerFixture,
} from './support/runner-fixture.ts'

/** The acceptance figures: `MODEL_RUNS=100 OUTAGE_SECONDS=60 npm run jest -- services/runner/test/model-outage` (about four minutes). */
const RUNS = Number(process.env['MODEL_RUNS'] ?? 5)
const OUTAGE_SECONDS = Number(process.env['OUTAGE_SECONDS'] ?? 0)
const KILLS = process.env['MODEL_RUNS'] ? 4 : 2

const fixture = useRunnerFixture()
// The usual lease: loading the AI SDK takes longer than the short one of other tests on a busy machine.
const timing = { ...FAST_TIMING, leaseMs: 15_000, renewMs: 4_000 }
let acme: TestOrganization
let server: StubModelServer
beforeEach(async () => {
  acme = await fixture.createOrganization()
})
afterEach(() => server.close())

/** Sends the number of the run's order, then ends the run. */
function answer({ body }: ModelRequest): ModelAnswer {
  const text = JSON.stringify(body)
  const [, number = ''] = /order (\d+)/u.exec(text) ?? []
  return text.includes('Accepted')
    ? { toolCalls: [{ name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }] }
    : { toolCalls: [{ name: 'send_to_order_intake', arguments: { message: number } }] }
}

async function startModel(otherwise: ModelTurn): Promise<Record<string, string>> {
  server = await startStubModelServer({ otherwise })
  return { AGENT_MODEL: 'openai-compatible:stub', AGENT_BASE_URL: server.baseUrl }
}

async function startRuns(): Promise<AcceptedStart[]> {
  const starts: AcceptedStart[] = []
  for (let n = 0; n < RUNS; n += 1) starts.push(await fixture.start(acme, { context: `order ${n}` }))
  return starts
}

/** Waits until all runs have ended, and expects that each has succeeded and sent its payload once. */
async function expectAllSent(starts: readonly AcceptedStart[]) {
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

test(
  'an outage of the model parks its runs without a slot, loses none and sends nothing twice',
  async () => {
    let isOut = true
    const env = await startModel((request) =>
      isOut && JSON.stringify(request.body).includes('Accepted')
        ? { failure: 'status', status: 503, ...(OUTAGE_SECONDS > 0 ? {} : { retryAfterSeconds: 3_600 }) }
        : answer(request),
    )
    // With one slot, the second run begins only because the first one gives it back.
    await fixture.startRunner({ timing }, { ...env, ...(OUTAGE_SECONDS > 0 ? {} : { RUNNER_CONCURRENCY: '1' }) })
    const startedMs = performance.now()
    const starts = await startRuns()
    if (OUTAGE_SECONDS > 0) {
      await delay(OUTAGE_SECONDS * 1_000)
      isOut = false
    } else {
      await waitUntil(async () => {
        const sessions = await Promise.all(starts.map(({ sessionId }) => showSession(fixture.db, sessionId)))
        return acme.endpoint.requests.length === RUNS && sessions.every((session) => session?.lease === null)
      })
      isOut = false
      await fixture.db.pool.query('UPDATE sessions SET waiting_since = now()')
    }
    const runs = await expectAllSent(starts)
    expect(runs.every(({ attempts }) => attempts === 1)).toBe(true)
    const parks = runs.map(
      ({ steps }) => steps.filter(({ data }) => 'code' in data && data.code === 'run_parked').length,
    )
    expect(Math.min(...parks)).toBeGreaterThan(0)
    report(`an outage of ${OUTAGE_SECONDS} s`, startedMs, `parked ${parks.reduce((sum, each) => sum + each)} times`)
  },
  NEVER_MS,
)

test(
  'runners that are killed in the middle of answers lose no run and send nothing twice',
  async () => {
    let underWay = 0
    const env = await startModel(async (request) => {
      underWay += 1
      await delay(300, undefined, { ref: false })
      underWay -= 1
      return { ...answer(request), dripMs: 5 }
    })
    const short = { leaseMs: 4_000, renewMs: 1_000 }
    const startRunner = () => fixture.startRunnerProcess(short, { ...env, RUNNER_CONCURRENCY: '4' })
    const startedMs = performance.now()
    const starts = await startRuns()
    for (let kill = 0; kill < KILLS; kill += 1) {
      const runner = await startRunner()
      const asked = server.requests.length
      await waitUntil(() => underWay > 0 && server.requests.length > asked, { timeoutMs: 60_000 })
      runner.kill('SIGKILL')
      await runner.exited
    }
    await startRunner()
    const runs = await expectAllSent(starts)
    expect(Math.max(...runs.map(({ attempts }) => attempts))).toBeGreaterThan(1)
    report(`${KILLS} kills`, startedMs, `at most ${Math.max(...runs.map(({ attempts }) => attempts))} attempts`)
  },
  NEVER_MS,
)

function report(what: string, startedMs: number, detail: string): void {
  if (!process.env['MODEL_RUNS']) return
  const seconds = Math.round((performance.now() - startedMs) / 1_000)
  process.stdout.write(
    `${RUNS} of ${RUNS} runs succeeded with ${what} in ${seconds} s: ${server.requests.length} requests, ${detail}\n`,
  )
}
