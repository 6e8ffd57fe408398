import { afterAll, beforeEach, expect, test } from '@jest/globals'
import { type ModelAnswer, type ModelRequest, startStubModelServer, waitUntil } from '@workflow-service/testkit'
import {
  type AcceptedStart,
  FAST_TIMING,
  NEVER_MS,
  type TestOrganization,
  useRunnerFixture,
} from './support/runner-fixture.ts'

/** The acceptance figure: `RATE_LIMIT_RUNS=100 npm run jest -- services/runner/test/model-rate-limit` (about two minutes). */
const RUNS = Number(process.env['RATE_LIMIT_RUNS'] ?? 6)
const REQUESTS_PER_SECOND = 2

const fixture = useRunnerFixture()
let acme: TestOrganization
const closing: { close(): Promise<void> }[] = []
beforeEach(async () => {
  acme = await fixture.createOrganization()
})
afterAll(() => Promise.all(closing.map((server) => server.close())))

test(
  `all of ${RUNS} runs on two runners succeed while the model allows ${REQUESTS_PER_SECOND} requests/s`,
  async () => {
    const answeredAt: number[] = []
    const answer = ({ body, receivedAt }: ModelRequest): ModelAnswer => {
      const lastSecond = answeredAt.filter((time) => time > receivedAt - 1_000)
      if (lastSecond.length >= REQUESTS_PER_SECOND) return { failure: 'status', status: 429, retryAfterSeconds: 1 }
      answeredAt.push(receivedAt)
      const [, context = ''] = /order (\d+)/u.exec(JSON.stringify(body)) ?? []
      return JSON.stringify(body).includes('Accepted')
        ? { toolCalls: [{ name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }] }
        : { toolCalls: [{ name: 'send_to_order_intake', arguments: { message: context } }] }
    }
    const server = await startStubModelServer({ otherwise: answer })
    closing.push(server)
    const env = { AGENT_MODEL: 'openai-compatible:limited', AGENT_BASE_URL: server.baseUrl }
    // The usual lease: loading the AI SDK takes longer than the short one of other tests on a busy machine.
    const timing = { ...FAST_TIMING, leaseMs: 15_000, renewMs: 4_000 }
    await Promise.all([fixture.startRunner({ timing }, env), fixture.startRunner({ timing }, env)])

    const startedMs = performance.now()
    const starts: AcceptedStart[] = []
    for (let n = 0; n < RUNS; n += 1) starts.push(await fixture.start(acme, { context: `order ${n}` }))
    const runs = await waitUntil(
      async () => {
        const unfinished = await fixture.db.prisma.start.count({ where: { status: { in: ['queued', 'running'] } } })
        return unfinished === 0 ? await Promise.all(starts.map(({ startId }) => fixture.run(startId))) : undefined
      },
      { timeoutMs: NEVER_MS, message: `${RUNS} runs to end` },
    )
    expect(runs.filter(({ status }) => status !== 'succeeded').map(({ error }) => error)).toEqual([])
    expect(runs.every(({ attempts }) => attempts === 1)).toBe(true)
    const received = acme.endpoint.requests.map(({ json }) => Number((json as { message: string }).message))
    expect(received.toSorted((a, b) => a - b)).toEqual(Array.from({ length: RUNS }, (_, n) => n))
    if (process.env['RATE_LIMIT_RUNS']) {
      const parks = runs.flatMap(({ steps }) =>
        steps.filter(({ data }) => 'code' in data && data.code === 'run_parked'),
      ).length
      const seconds = Math.round((performance.now() - startedMs) / 1_000)
      process.stdout.write(
        `${RUNS} of ${RUNS} runs succeeded in ${seconds} s: ${server.requests.length} requests for ${answeredAt.length} answers, parked ${parks} times\n`,
      )
    }
  },
  NEVER_MS,
)
