import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type OtlpReceiver, SPAN_KINDS, startOtlpReceiver } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { callTool, end } from './support/model-agent.ts'
import { MODEL_TIMING, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

// The tree of all services, and what is in no span: infra/monitoring/test.

const fixture = useRunnerFixture()
const startModelServer = useStubModel()
let acme: TestOrganization
let receiver: OtlpReceiver
beforeEach(async () => {
  receiver = await startOtlpReceiver()
  acme = await fixture.createOrganization()
})
afterEach(() => receiver.close())

const UNSET = 0
const ERROR = 2

test('attempts and requests to the model are spans with what they were about, and the codes of their errors', async () => {
  const usage = { inputTokens: 90, outputTokens: 20, cacheReadTokens: 40, reasoningTokens: 7 }
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
