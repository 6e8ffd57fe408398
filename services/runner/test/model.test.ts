import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from '@jest/globals'
import type { ModelAnswerStep, SessionSummaryStep } from '@workflow-service/contract'
import {
  createSecretBox,
  findTrial,
  listModelKeys,
  newId,
  readUsage,
  recordTrial,
  rotateSecrets,
  type RunDetails,
} from '@workflow-service/database'
import {
  type ModelAnswer,
  type ModelRequest,
  type ModelTurn,
  SPAN_KINDS,
  startOtlpReceiver,
  waitUntil,
} from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { callTool, end } from './support/model-agent.ts'
import { useModelFiles } from './support/model-config.ts'
import { MODEL_TIMING, NEVER_MS, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

/** By hand: `BUDGET_RUNS=10000 npm run jest -- services/runner/test/model.test` (about a quarter of an hour). */
const RUNS = Number(process.env['BUDGET_RUNS'] ?? 12)
const SLOTS = RUNS > 1_000 ? '64' : '8'
/** 0.2 s for each run, on 2 cores that others use, too. */
const TEST_MS = Math.max(NEVER_MS, RUNS * 200)

const fixture = useRunnerFixture()
const startModelServer = useStubModel()
const writeModels = useModelFiles()
let acme: TestOrganization
beforeEach(async () => {
  acme = await fixture.createOrganization()
})

/** 1,500 + 100 tokens, of which 500 are cached and 40 are reasoning: 1,000 + 50 + 120 + 160 millionths. */
const usage = { inputTokens: 1_500, outputTokens: 100, cacheReadTokens: 500, reasoningTokens: 40 }
const COST = 1_330
const PRICES = { input: 1, cache_read: 0.1, output: 2, reasoning: 4 }

/** Sends the number of the run's order, then ends the run; or summarizes the session. */
function answer({ conversation }: ModelRequest): ModelAnswer {
  const { messages, tools } = conversation
  // Less than what is reserved for so short a prompt.
  if (tools.length === 0) return { text: 'Orders were sent.', usage: { inputTokens: 200, outputTokens: 100 } }
  const [, message = ''] = /of="context">\norder (\d+)/u.exec(messages[0]!.text) ?? []
  const isSent = JSON.stringify(messages.at(-1)?.results).includes('Accepted')
  return { ...(isSent ? end() : callTool('send_to_order_intake', { message })), usage }
}

/** Starts a model with a fallback, and gives the settings of its runners. */
async function startModels(main: ModelTurn): Promise<Record<string, string>> {
  const [first, second] = await Promise.all([main, answer].map((otherwise) => startModelServer({ otherwise })))
  const model = {
    model: 'openai-compatible:big',
    base_url: first!.baseUrl,
    prices: PRICES,
    max_output_tokens: 200,
    history_tokens: 120,
  }
  const models = {
    main: { ...model, fallback: 'spare' },
    spare: { ...model, model: 'openai-compatible:small', base_url: second!.baseUrl },
  }
  return { ...writeModels({ default: 'main', currency: 'EUR', models }), AGENT_FALLBACK_SECONDS: '1' }
}

/** The answers and the summaries of sessions. */
function listAnswers(runs: readonly RunDetails[]): (ModelAnswerStep | SessionSummaryStep)[] {
  return runs.flatMap(({ steps }) =>
    steps.flatMap(({ kind, data }) => (kind === 'model_answer' || kind === 'session_summary' ? [data] : [])),
  )
}

/**
 * Starts the runs, four in each session, with a budget of the workflow for a day. Expects that each succeeds or says
 * that the budget is spent, that no order is sent twice, and that journal, budgets and usage have the same sum.
 */
async function runAll(budget: number, startRunners: () => Promise<unknown>) {
  const { organizationId, workflowId, apiKeyId } = acme
  await fixture.db.prisma.workflow.update({ where: { id: workflowId }, data: { dayBudget: budget } })
  const starts: Awaited<ReturnType<typeof fixture.start>>[] = []
  for (let n = 0; n < RUNS; n += 1) {
    const session = n % 4 === 0 ? {} : { sessionId: starts.at(-1)!.sessionId }
    starts.push(await fixture.start(acme, { context: `order ${n}`, ...session }))
  }
  await startRunners()
  await waitUntil(
    async () => (await fixture.db.prisma.start.count({ where: { status: { in: ['queued', 'running'] } } })) === 0,
    { timeoutMs: TEST_MS, message: `${RUNS} runs to end` },
  )
  const runs: RunDetails[] = []
  for (const { startId } of starts) runs.push(await fixture.run(startId))

  const errors = runs.flatMap(({ status, error }) => (status === 'succeeded' ? [] : [error ?? status]))
  const clear = /^budget_exceeded: The budget of the workflow for a day is [\d.]+ EUR, and [\d.]+ EUR are spent/u
  expect(errors.filter((error) => !clear.test(error))).toEqual([])
  const received = acme.endpoint.requests.map(({ json }) => (json as { message: string }).message)
  expect(new Set(received).size).toBe(received.length)

  const answers = listAnswers(runs)
  const spent = answers.reduce((sum, { cost_micros: cost = 0 }) => sum + cost, 0)
  const { rows } = await fixture.db.pool.query(
    `SELECT spent::int FROM model_spending WHERE organization_id = $1
     UNION ALL SELECT amount::int FROM model_reservations WHERE organization_id = $1`,
    [organizationId],
  )
  expect(rows).toEqual([{ spent }, { spent }])
  const used = new Set(answers.map(({ model_name: name }) => name))
  const groupsBy = { workflow: [workflowId], api_key: [apiKeyId], model: [...used].map(() => null) }
  for (const by of ['workflow', 'api_key', 'model'] as const) {
    const { [by]: ids } = groupsBy
    const { groups, currency } = await readUsage(fixture.db, { organizationId, memberId: null }, { by })
    const sum = groups.reduce((total, { cost_micros: cost }) => total + cost, 0)
    expect({ by, ids: groups.map(({ id }) => id), sum, currency }).toEqual({ by, ids, sum: spent, currency: 'EUR' })
  }
  expect(spent).toBeLessThan(budget + COST)
  return { runs, answers, spent }
}

describe('what runs spend on models', () => {
  test(
    'stays within the budget but for one answer, and is the same in journal, usage and metrics',
    async () => {
      const env = await startModels(answer)
      const budget = Math.round(RUNS * COST * 1.2)
      const urls: string[] = []
      const { runs, answers, spent } = await runAll(budget, async () => {
        for (let n = 0; n < 2; n += 1) urls.push((await fixture.startRunner({ timing: MODEL_TIMING }, env)).url)
      })
      expect(runs.filter(({ status }) => status === 'failed').length).toBeGreaterThan(0)
      expect(answers.some(({ turn }) => turn === 0)).toBe(true)
      expect(spent).toBeGreaterThanOrEqual(budget)
      const metrics = await Promise.all(urls.map(async (url) => (await fetch(`${url}/metrics`)).text()))
      const counted = metrics.map(
        (text) => /runner_model_cost_micros_total\{[^}]*model="main"[^}]*\} (\d+)/u.exec(text)?.[1],
      )
      expect(counted.reduce((sum, count) => sum + Number(count ?? 0), 0)).toBe(spent)
      expect(answers[0]).toMatchObject({ model_name: 'main', cost_micros: COST, currency: 'EUR' })
      const notices = fixture.logLines.filter(({ msg }) => msg === 'budget.nearly_spent')
      expect(notices).toMatchObject([{ scope: 'day', budget }])
      const audited = await fixture.db.prisma.auditEvent.findMany({ where: { action: 'budget.nearly_spent' } })
      expect(audited).toHaveLength(1)
    },
    TEST_MS,
  )

  test(
    'is counted once while the model breaks off answers, its fallback takes over and runners are killed',
    async () => {
      let [underWay, asked] = [0, 0]
      const env = await startModels(async (request) => {
        underWay += 1
        asked += 1
        await delay(50, undefined, { ref: false })
        underWay -= 1
        return asked % 3 === 0 ? { ...answer(request), isCutOff: true } : { ...answer(request), dripMs: 2 }
      })
      const startRunner = () =>
        fixture.startRunnerProcess({ leaseMs: 4_000, renewMs: 1_000 }, { ...env, RUNNER_CONCURRENCY: SLOTS })
      const { runs } = await runAll(Math.round(RUNS * COST * 1.5), async () => {
        for (let kill = 0; kill < 2; kill += 1) {
          const runner = await startRunner()
          const before = asked
          await waitUntil(() => underWay > 0 && asked > before + 3, { timeoutMs: 60_000 })
          runner.kill('SIGKILL')
          await runner.exited
        }
        await startRunner()
      })
      expect(Math.max(...runs.map(({ attempts }) => attempts))).toBeGreaterThan(1)
    },
    TEST_MS,
  )
})

describe('a key of an organization’s own', () => {
  test('is used, counted apart and rotated, and is nowhere in the clear', async () => {
    const key = 'sk-own-key-of-acme-0123456789'
    const env = await startModels((request) =>
      request.headers.authorization === `Bearer ${key}` ? answer(request) : { failure: 'status', status: 401 },
    )
    const secrets = { SECRETS_KEY: fixture.secretsKey }
    const runner = await fixture.startRunner({ timing: MODEL_TIMING }, { ...env, ...secrets })
    await waitUntil(async () => (await fixture.db.pool.query(`SELECT FROM models WHERE name = 'main'`)).rowCount)
    const { organizationId } = acme
    await fixture.saveModelKey(acme, { model: 'main', key: 'sk-wrong-0123456789' })
    const [refused] = await fixture.waitForRuns([await fixture.start(acme, { context: 'order 0' })])
    expect(refused!.error).toContain("The model's API answered 401 to the organization's own key for main")
    await fixture.saveModelKey(acme, { model: 'main', key })
    expect(await listModelKeys(fixture.db, organizationId)).toMatchObject([{ model: 'main', last_characters: '6789' }])
    const [run] = await fixture.waitForRuns([await fixture.start(acme, { context: 'order 1' })])
    expect(run).toMatchObject({ status: 'succeeded' })
    const { groups } = await readUsage(fixture.db, { organizationId, memberId: null }, { by: 'model' })
    expect(groups).toMatchObject([{ name: 'main, own key', cost_micros: 2 * COST }])

    const next = randomBytes(32).toString('base64')
    const rotated = await rotateSecrets(fixture.db, createSecretBox([next, fixture.secretsKey]))
    expect(rotated).toMatchObject({ rotated: 1, failed: [] })
    await runner.stop()
    await fixture.startRunner({ timing: MODEL_TIMING }, { ...env, SECRETS_KEY: next })
    const [after] = await fixture.waitForRuns([await fixture.start(acme, { context: 'order 2' })])
    expect(after).toMatchObject({ status: 'succeeded' })

    for (const table of ['model_keys', 'run_steps', 'run_prompts', 'starts', 'audit_events', 'model_limits']) {
      const { rows } = await fixture.db.pool.query<{ text: string }>(`SELECT ${table}::text AS text FROM ${table}`)
      expect(rows.filter(({ text }) => text.includes(key))).toEqual([])
    }
    expect(JSON.stringify(fixture.logLines)).not.toContain(key)
  })

  test('is counted apart also for what people try', async () => {
    const env = { ...(await startModels(answer)), SECRETS_KEY: fixture.secretsKey }
    await fixture.startRunner({ timing: { ...MODEL_TIMING, trialMs: 100 } }, env)
    await waitUntil(async () => (await fixture.db.pool.query(`SELECT FROM models WHERE name = 'main'`)).rowCount)
    await fixture.saveModelKey(acme, { model: 'main', key: 'sk-own-key-of-acme-0123456789' })
    const viewer = { organizationId: acme.organizationId, memberId: null }
    const trial = { id: newId(), workflowId: acme.workflowId, userId: newId() }
    await recordTrial(fixture.db, viewer, { ...trial, sessionId: null, context: 'order 1', rules: null })
    const ended = await waitUntil(async () => {
      const found = await findTrial(fixture.db, viewer, trial)
      return found?.finished_at ? found : undefined
    })
    expect(ended.error).toBeNull()
    const { groups } = await readUsage(fixture.db, viewer, { by: 'model' })
    expect(groups).toMatchObject([{ name: 'main, own key', cost_micros: 2 * COST }])
  })
})

describe('runs with a model', () => {
  test('on two runners all succeed while the model allows 2 requests/s', async () => {
    const answeredAt: number[] = []
    const { baseUrl } = await startModelServer({
      otherwise(request) {
        const lastSecond = answeredAt.filter((time) => time > request.receivedAt - 1_000)
        if (lastSecond.length >= 2) return { failure: 'status', status: 429, retryAfterSeconds: 1 }
        answeredAt.push(request.receivedAt)
        return answer(request)
      },
    })
    const env = { AGENT_MODEL: 'openai-compatible:stub', AGENT_BASE_URL: baseUrl }
    await Promise.all([1, 2].map(() => fixture.startRunner({ timing: MODEL_TIMING }, env)))
    const starts = [0, 1, 2].map((n) => fixture.start(acme, { context: `order ${n}` }))
    const runs = await fixture.waitForRuns(await Promise.all(starts))
    expect(runs.map(({ status, attempts }) => [status, attempts])).toEqual(runs.map(() => ['succeeded', 1]))
    const received = acme.endpoint.requests.map(({ json }) => (json as { message: string }).message)
    expect(received.toSorted()).toEqual(['0', '1', '2'])
  })

  test('have the model that their workflow chooses, of those that the runner offers to people', async () => {
    const server = await startModelServer({ otherwise: () => end('nothing_to_do') })
    const shown = { model: 'openai-compatible:large', data_region: 'eu', reads: ['pdf'], fallback: 'small' }
    const model = { ...shown, base_url: server.baseUrl }
    const models = { large: model, small: { ...model, model: 'openai-compatible:small', fallback: undefined } }
    await fixture.startRunner({ timing: MODEL_TIMING }, writeModels({ default: 'large', models }))
    await fixture.db.prisma.workflow.update({ where: { id: acme.workflowId }, data: { model: 'small' } })
    await fixture.waitForRuns([await fixture.start(acme, { context: 'order 1' })])
    expect(server.requests.map(({ body }) => (body as { model: string }).model)).toEqual(['small'])
    const offered = await waitUntil(async () => {
      const { rows } = await fixture.db.pool.query<{ name: string }>('SELECT * FROM models ORDER BY name')
      return rows.some(({ name }) => name === 'large') ? rows : undefined
    })
    expect(offered).toMatchObject([
      { name: 'builtin', model: 'builtin', is_default: false },
      { name: 'large', is_default: true, ...shown },
      { name: 'small', model: 'openai-compatible:small', is_default: false, organization_ids: [] },
    ])
  })
})

// The tree of all services, and what is in no span: infra/monitoring/test.
const UNSET = 0
const ERROR = 2

test('attempts and requests to the model are spans with what they were about, and the codes of their errors', async () => {
  const receiver = await startOtlpReceiver()
  const model = await startModelServer({
    turns: [
      { failure: 'status', status: 503 },
      { ...callTool('send_to_order_intake', { message: 'hello' }), usage },
      end(),
      { failure: 'status', status: 401 },
    ],
  })
  const runner = await fixture.startRunner(
    { timing: MODEL_TIMING },
    {
      AGENT_MODEL: 'openai-compatible:stub-1',
      AGENT_BASE_URL: model.baseUrl,
      AGENT_MAX_OUTPUT_TOKENS: '500',
      OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-receiver-key=receiver-key-0123456789',
    },
  )
  const start = await fixture.start(acme)
  await fixture.waitForRuns([start])
  const failed = await fixture.start(acme)
  await fixture.waitForRuns([failed])
  await runner.stop()
  await receiver.close()
  const headers = { 'x-receiver-key': 'receiver-key-0123456789' }
  expect(receiver.requests[0]).toMatchObject({ path: '/v1/traces', headers })

  const spansOf = ({ startId }: { startId: string }) =>
    receiver.spans().filter(({ traceId }) => traceId === startId.replaceAll('-', ''))
  const attempt = spansOf(start).at(-1)!
  expect(attempt).toMatchObject({ name: 'invoke_agent', kind: SPAN_KINDS.internal, status: { code: UNSET } })
  expect(attempt.parentSpanId).toBeUndefined()
  expect(attempt.attributes).toEqual({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': start.sessionId,
    'workflow_service.organization.id': acme.organizationId,
    'workflow_service.workflow.id': acme.workflowId,
    'workflow_service.run.id': start.startId,
    'workflow_service.run.attempt': 1,
    'workflow_service.attempt.outcome': 'succeeded',
  })
  const requests = spansOf(start).filter(({ name }) => name === 'chat stub-1')
  const request = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'stub-1',
    'gen_ai.request.max_tokens': 500,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(model.baseUrl).port),
  }
  expect(requests.map(({ status }) => status)).toEqual([{ code: ERROR }, { code: UNSET }, { code: UNSET }])
  expect(requests[0]!.attributes).toEqual({ ...request, 'error.type': 'model_unavailable' })
  expect(requests[1]!.attributes).toEqual({
    ...request,
    'gen_ai.response.id': expect.any(String),
    'gen_ai.response.finish_reasons': ['tool-calls'],
    'gen_ai.usage.input_tokens': 1_500,
    'gen_ai.usage.cache_read.input_tokens': 500,
    'gen_ai.usage.cache_write.input_tokens': 0,
    'gen_ai.usage.output_tokens': 100,
    'gen_ai.usage.reasoning.output_tokens': 40,
  })
  const ofFailed = spansOf(failed).filter(({ name }) => name !== 'wait_for_runner')
  expect(ofFailed.map(({ attributes }) => attributes['error.type'])).toEqual([
    'model_unauthorized',
    'model_unauthorized',
  ])
  expect(ofFailed[1]).toMatchObject({
    name: 'invoke_agent',
    status: { code: ERROR },
    attributes: { 'workflow_service.attempt.outcome': 'failed' },
  })
})
