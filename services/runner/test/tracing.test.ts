import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  type ModelTurn,
  type OtlpReceiver,
  SPAN_KINDS,
  startOtlpReceiver,
  type StubModelServer,
} from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { MODEL_TIMING, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()
const DESCRIPTION = 'Post the parrot to Order intake.'
const KEY = 'sk-test-0123456789abcdef'
const HEADER = 'receiver-key-0123456789'

let acme: TestOrganization
let receiver: OtlpReceiver
let model: StubModelServer | undefined
beforeEach(async () => {
  receiver = await startOtlpReceiver()
  acme = await fixture.createOrganization({ description: DESCRIPTION })
})
const startModelServer = useStubModel()
afterEach(() => receiver.close())

/** Settings of a runner with a model that takes these turns, and with the receiver. */
async function envWithModel(...turns: ModelTurn[]): Promise<Record<string, string>> {
  model = await startModelServer({ turns })
  return {
    AGENT_MODEL: 'openai-compatible:stub-1',
    AGENT_BASE_URL: model.baseUrl,
    AGENT_API_KEY: KEY,
    AGENT_MAX_OUTPUT_TOKENS: '500',
    OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/`,
    OTEL_EXPORTER_OTLP_HEADERS: `x-receiver-key=${HEADER}`,
  }
}

const send = { name: 'send_to_order_intake', arguments: { message: 'cockatoo' } }
const end = { name: 'end_run', arguments: { status: 'done', reason: 'The cockatoo has landed.' } }

const UNSET = 0
const ERROR = 2

describe('with OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  test('an attempt and its requests to the model are exported as spans, without any text of them', async () => {
    const env = await envWithModel(
      { failure: 'status', status: 503, message: 'macaw overload' },
      {
        text: 'A cockatoo it is.',
        toolCalls: [send],
        usage: { inputTokens: 90, outputTokens: 20, cacheReadTokens: 40, reasoningTokens: 7 },
      },
      { toolCalls: [end] },
    )
    const runner = await fixture.startRunner({ timing: MODEL_TIMING }, env)
    const start = await fixture.start(acme, { context: 'A parrot for Ada Lovelace' })
    const [run] = await fixture.waitForRuns([start])
    expect(run).toMatchObject({ status: 'succeeded' })
    await runner.stop()

    const spans = receiver.spans()
    const attempt = spans.at(-1)!
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

    expect(spans.map(({ name }) => name)).toEqual([
      'wait_for_runner',
      'chat stub-1',
      'chat stub-1',
      'deliver',
      'chat stub-1',
      'invoke_agent',
    ])
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([start.startId.replaceAll('-', '')]))

    const requests = spans.filter(({ name }) => name.startsWith('chat'))
    expect(requests).toHaveLength(3)
    const request = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'stub-1',
      'gen_ai.request.max_tokens': 500,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(model!.baseUrl).port),
    }
    for (const span of requests) {
      expect(span).toMatchObject({ name: 'chat stub-1', kind: SPAN_KINDS.client, traceId: attempt.traceId, events: [] })
      expect(span.parentSpanId).toBe(attempt.spanId)
      expect(span.attributes).toMatchObject(request)
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

    const exported = receiver.text()
    for (const text of ['parrot', 'Ada', 'cockatoo', 'macaw', 'Order intake', 'order_intake', 'Forward', KEY, HEADER]) {
      expect(exported).not.toContain(text)
    }
    expect(receiver.requests[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-receiver-key': HEADER } })
  })

  test('an attempt that fails has the code of its error', async () => {
    const env = await envWithModel({ failure: 'status', status: 401, message: `no access with ${KEY}` })
    const runner = await fixture.startRunner({ timing: MODEL_TIMING }, env)
    const [run] = await fixture.waitForRuns([await fixture.start(acme)])
    expect(run).toMatchObject({ status: 'failed' })
    await runner.stop()
    const [, request, attempt] = receiver.spans()
    expect(request!.attributes).toMatchObject({ 'error.type': 'model_unauthorized' })
    expect(attempt).toMatchObject({ name: 'invoke_agent', status: { code: ERROR } })
    expect(attempt!.attributes).toMatchObject({
      'workflow_service.attempt.outcome': 'failed',
      'error.type': 'model_unauthorized',
    })
  })

  test('a receiver that is unreachable changes nothing for runs, and is logged once', async () => {
    const env = await envWithModel({ toolCalls: [send] }, { toolCalls: [end] })
    const logged = fixture.logLines.length
    const runner = await fixture.startRunner(
      { timing: MODEL_TIMING },
      { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
    )
    const [run] = await fixture.waitForRuns([await fixture.start(acme)])
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1 })
    await runner.stop()
    expect(fixture.logLines.slice(logged).filter(({ msg }) => msg === 'span.export_failed')).toMatchObject([
      { level: 'warn', spans: expect.any(Number), error: { message: expect.stringContaining('ECONNREFUSED') } },
    ])
  })
})

/** Node's options that write the URL of each module of OpenTelemetry to stderr when it is loaded. */
const REPORT_LOADED = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, nextLoad) {
      if (url.includes('@opentelemetry')) process.stderr.write('loaded ' + url + '\\n')
      return nextLoad(url, context)
    },
  })`)}`

test("without the setting no module of OpenTelemetry's SDK is loaded", async () => {
  const env = await envWithModel({ toolCalls: [send] }, { toolCalls: [end] })
  const unset = { OTEL_EXPORTER_OTLP_ENDPOINT: '', NODE_OPTIONS: REPORT_LOADED }
  const runner = await fixture.startRunnerProcess(MODEL_TIMING, { ...env, ...unset })
  const [run] = await fixture.waitForRuns([await fixture.start(acme)])
  expect(run).toMatchObject({ status: 'succeeded' })
  expect(await runner.stop()).toMatchObject({ code: 0 })
  const loaded = runner.stderr.split('\n').filter((line) => line.startsWith('loaded '))
  // prom-client needs its API.
  expect(loaded.length).toBeGreaterThan(0)
  expect(loaded.filter((line) => !/@opentelemetry.api[/@]/.test(line))).toEqual([])
  expect(receiver.spans()).toEqual([])
})
