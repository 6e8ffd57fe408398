import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { SPAN_KINDS, startOtlpReceiver, waitUntil } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { callTool, end } from './support/model-agent.ts'
import { MODEL_TIMING, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()
let acme: TestOrganization
beforeEach(async () => {
  acme = await fixture.createOrganization()
})
const startModelServer = useStubModel()

describe('runs with a model', () => {
  test('on two runners all succeed while the model allows 2 requests/s', async () => {
    const answeredAt: number[] = []
    const { baseUrl } = await startModelServer({
      otherwise({ receivedAt, conversation }) {
        const lastSecond = answeredAt.filter((time) => time > receivedAt - 1_000)
        if (lastSecond.length >= 2) return { failure: 'status', status: 429, retryAfterSeconds: 1 }
        answeredAt.push(receivedAt)
        const text = JSON.stringify(conversation)
        const [, message = ''] = /order (\d+)/u.exec(text) ?? []
        return text.includes('Accepted') ? end() : callTool('send_to_order_intake', { message })
      },
    })
    const env = { AGENT_MODEL: 'openai-compatible:stub', AGENT_BASE_URL: baseUrl }
    await Promise.all([1, 2].map(() => fixture.startRunner({ timing: MODEL_TIMING }, env)))
    const starts = [0, 1, 2].map((n) => fixture.start(acme, { context: `order ${n}` }))
    const runs = await fixture.waitForRuns(await Promise.all(starts))
    expect(runs.map(({ status, attempts }) => [status, attempts])).toEqual(runs.map(() => ['succeeded', 1]))
    const received = acme.endpoint.requests.map(({ json }) => (json as { message: string }).message)
    expect(received.toSorted()).toEqual(['0', '1', '2'])
  }, 60_000)

  test('have the model that their workflow chooses, of those that the runner offers to people', async () => {
    const server = await startModelServer({ otherwise: () => end('nothing_to_do') })
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

// The tree of all services, and what is in no span: infra/monitoring/test.
const UNSET = 0
const ERROR = 2

test('attempts and requests to the model are spans with what they were about, and the codes of their errors', async () => {
  const usage = { inputTokens: 90, outputTokens: 20, cacheReadTokens: 40, reasoningTokens: 7 }
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
    'gen_ai.usage.input_tokens': 90,
    'gen_ai.usage.cache_read.input_tokens': 40,
    'gen_ai.usage.cache_write.input_tokens': 0,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.reasoning.output_tokens': 7,
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
