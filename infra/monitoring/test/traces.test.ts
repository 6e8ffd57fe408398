import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  type CustomerEndpoint,
  freePort,
  type OtlpReceiver,
  type ReceivedSpan,
  SPAN_KINDS,
  startCustomerEndpoint,
  startOtlpReceiver,
  startStubModelServer,
  type StubModelServer,
  waitUntil,
} from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import type { ServiceName } from '../../service-settings.ts'
import { useServices, type Workflow } from './support/use-services.ts'

const services = useServices()

/** Several processes are started, one after another has been killed. */
const TIMEOUT_MS = 120_000

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const CALLER_SPAN_ID = 'b7ad6b7169203331'
const CALLER = { traceparent: `00-${TRACE_ID}-${CALLER_SPAN_ID}-01`, tracestate: 'vendor=value' }
const SIGNING_SECRET = 'signing-secret-0123456789'
const MODEL_KEY = 'sk-test-0123456789abcdef'
const RECEIVER_KEY = 'receiver-key-0123456789'
const SECRET_PATH = '/hooks/secret-path-0123456789'

let endpoint: CustomerEndpoint
let receiver: OtlpReceiver
let model: StubModelServer | undefined
beforeEach(async () => {
  endpoint = await startCustomerEndpoint({ answer: { body: 'kakapo' } })
  receiver = await startOtlpReceiver()
})
afterEach(async () => {
  await Promise.all([endpoint.close(), receiver.close(), model?.close()])
  model = undefined
})

const send = { name: 'send_to_order_intake', arguments: { message: 'cockatoo' } }
const end = { name: 'end_run', arguments: { status: 'done', reason: 'The cockatoo has landed.' } }

const tracingEnv = (): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  OTEL_EXPORTER_OTLP_HEADERS: `x-receiver-key=${RECEIVER_KEY}`,
})

async function modelEnv(): Promise<Record<string, string>> {
  model = await startStubModelServer({ turns: [{ text: 'A macaw it is.', toolCalls: [send] }, { toolCalls: [end] }] })
  return { AGENT_MODEL: 'openai-compatible:stub-1', AGENT_BASE_URL: model.baseUrl, AGENT_API_KEY: MODEL_KEY }
}

/** Starts the workflow through the public API, and resolves to the id of the run. */
async function start(
  gatewayUrl: string,
  { workflowId, apiKey }: Workflow,
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await fetch(`${gatewayUrl}/v1/workflows/${workflowId}/start`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ context: 'message: A parrot for Ada Lovelace' }),
  })
  expect(response.status).toBe(202)
  return ((await response.json()) as { id: string }).id
}

async function waitForRun(runId: string): Promise<void> {
  await waitUntil(
    async () => {
      const run = await services.db.prisma.start.findUniqueOrThrow({ where: { id: runId } })
      if (run.status === 'failed') throw new Error(`The run failed: ${run.error}`)
      return run.status === 'succeeded'
    },
    { timeoutMs: 60_000, message: 'the run to succeed' },
  )
}

/** The spans of a name; there must be one or more. */
function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan[] {
  const found = spans.filter((span) => span.name === name)
  if (found.length === 0)
    throw new Error(`There is no ${name}; there are: ${spans.map((span) => span.name).join(', ')}`)
  return found
}

const START_SPAN = 'POST /v1/workflows/{workflow_id}/start'
const DELIVERY_SPAN = 'sendPayload'

describe('with OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  test(
    "a start's spans are one tree in the caller's trace, from the API call to the endpoint",
    async () => {
      const running = await services.startAll({ ...tracingEnv(), ...(await modelEnv()) })
      const workflow = await services.createWorkflow(
        { url: endpoint.url + SECRET_PATH, signingSecret: SIGNING_SECRET },
        running.dispatcherUrl,
      )
      const runId = await start(running.gatewayUrl, workflow, CALLER)
      await waitForRun(runId)
      const [delivered] = await endpoint.waitForRequests(1, 60_000)
      await running.stop()

      const spans = receiver.spans().filter(({ traceId }) => traceId === TRACE_ID)
      const parents = new Map(spans.map(({ spanId, name }) => [spanId, name]))
      parents.set(CALLER_SPAN_ID, 'the caller')
      const tree = spans.map(({ service, kind, name, parentSpanId = '' }) => ({
        service,
        kind,
        name,
        parent: parents.get(parentSpanId),
      }))
      const { server, producer, internal, client } = SPAN_KINDS
      const chat = { service: 'runner', kind: client, name: 'chat stub-1', parent: 'invoke_agent' }
      const expected = [
        { service: 'gateway', kind: server, name: START_SPAN, parent: 'the caller' },
        { service: 'gateway', kind: producer, name: 'send workflow.sessions', parent: START_SPAN },
        { service: 'runner', kind: internal, name: 'wait_for_runner', parent: START_SPAN },
        { service: 'runner', kind: internal, name: 'invoke_agent', parent: START_SPAN },
        chat,
        { service: 'runner', kind: client, name: 'deliver', parent: 'invoke_agent' },
        { service: 'dispatcher', kind: server, name: DELIVERY_SPAN, parent: 'deliver' },
        { service: 'dispatcher', kind: client, name: 'POST', parent: DELIVERY_SPAN },
        chat,
      ]
      expect(tree).toHaveLength(expected.length)
      expect(tree).toEqual(expect.arrayContaining(expected))

      const [post] = named(spans, 'POST')
      expect(delivered!.headers).toMatchObject({
        traceparent: `00-${TRACE_ID}-${post!.spanId}-01`,
        tracestate: CALLER.tracestate,
      })
      const token = String(delivered!.headers['x-service-token'])
      expect(await checkServiceToken(token, SIGNING_SECRET)).toMatchObject({ ok: true })
      expect(named(spans, 'deliver')[0]!.attributes).toMatchObject({
        'workflow_service.run.id': runId,
        'workflow_service.delivery.outcome': 'accepted',
      })

      const secrets = [SIGNING_SECRET, token, MODEL_KEY, RECEIVER_KEY, workflow.apiKey, SECRET_PATH.slice(1)]
      const texts = ['parrot', 'Parrot', 'Ada', 'ada@', 'cockatoo', 'macaw', 'kakapo', 'rder intake', 'order_intake']
      for (const text of [...secrets, services.internalApiToken, services.secretsKey, ...texts, 'Forward']) {
        expect(receiver.text()).not.toContain(text)
      }
    },
    TIMEOUT_MS,
  )

  test(
    "both attempts of a run whose runner was killed are in the start's trace",
    async () => {
      const running = await services.startAll(tracingEnv(), { hasRunner: false })
      const workflow = await services.createWorkflow({ url: endpoint.url, signingSecret: null }, running.dispatcherUrl)
      const gate = Promise.withResolvers<void>()
      endpoint.answerWith(async () => {
        await gate.promise
        return { status: 204 }
      })
      const env = { ...tracingEnv(), ...(await modelEnv()), DISPATCHER_URL: running.dispatcherUrl }
      const first = await services.startProcess('runner', env)
      // Without a traceparent: the gateway begins the trace.
      const runId = await start(running.gatewayUrl, workflow)
      const [delivered] = await endpoint.waitForRequests(1, 60_000)
      const traceId = String(delivered!.headers['traceparent']).split('-')[1]
      const ofAttempt = (attempt: number) => (span: ReceivedSpan) =>
        span.traceId === traceId && span.attributes['workflow_service.run.attempt'] === attempt
      await receiver.waitForSpans(
        (spans) => spans.some(ofAttempt(1)) && spans.some(({ name }) => name.startsWith('chat')),
        'the spans of the first attempt that have ended',
      )
      first.kill('SIGKILL')
      await first.exited
      gate.resolve()
      const accepted = { where: { runId, outcome: 'accepted' } }
      await waitUntil(async () => (await services.db.prisma.delivery.count(accepted)) === 1)
      const second = await services.startProcess('runner', env)
      await waitForRun(runId)
      await second.stop()
      await running.stop()

      const spans = receiver.spans().filter((span) => span.traceId === traceId)
      const [started] = named(spans, START_SPAN)
      expect(started!.parentSpanId ?? '').toBe('')
      const waits = named(spans, 'wait_for_runner')
      expect(waits.map(({ attributes }) => attributes['workflow_service.run.attempt'])).toEqual([1, 2])
      // The span of the first attempt died with its runner; what it did before is there.
      const attempts = named(spans, 'invoke_agent')
      expect(attempts.map(({ attributes }) => attributes['workflow_service.run.attempt'])).toEqual([2])
      for (const { parentSpanId } of [...waits, ...attempts]) expect(parentSpanId).toBe(started!.spanId)
      expect(named(spans, 'chat stub-1')).toHaveLength(2)
      // The dispatcher wrote the result into the journal after its runner had died: the second one need not ask.
      expect(named(spans, DELIVERY_SPAN)).toHaveLength(1)
      expect(named(spans, 'POST')).toHaveLength(1)
      expect(endpoint.requests).toHaveLength(1)
    },
    TIMEOUT_MS,
  )
})

/**
 * Node's options that write the URLs of some modules to stderr when they are loaded: OpenTelemetry's SDK (prom-client
 * needs its API), Prisma and YAML.
 */
const REPORT_LOADED = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, nextLoad) {
      if (/@opentelemetry.(?!api[/@])|@prisma.client|[/]yaml[/]/.test(url)) process.stderr.write('loaded ' + url + '\\n')
      return nextLoad(url, context)
    },
  })`)}`

describe('without OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  test(
    "no service loads the SDK, only the application Prisma and YAML, and the caller's trace reaches the endpoint unchanged",
    async () => {
      const NODE_OPTIONS = REPORT_LOADED
      const dispatcherPort = String(await freePort())
      const gatewayPort = String(await freePort())
      const DISPATCHER_URL = `http://127.0.0.1:${dispatcherPort}`
      const envs: Record<ServiceName, Record<string, string>> = {
        dispatcher: { PORT: dispatcherPort },
        gateway: { PORT: gatewayPort },
        app: {},
        runner: {},
      }
      const processes = await Promise.all(
        Object.entries(envs).map(([name, env]) =>
          services.startProcess(name as ServiceName, { NODE_OPTIONS, DISPATCHER_URL, ...env }),
        ),
      )
      const workflow = await services.createWorkflow(
        { url: endpoint.url, signingSecret: SIGNING_SECRET },
        DISPATCHER_URL,
      )
      const gatewayUrl = `http://127.0.0.1:${gatewayPort}`
      await waitForRun(await start(gatewayUrl, workflow, CALLER))
      // Invalid, and absent: nothing is passed on.
      await waitForRun(await start(gatewayUrl, workflow, { ...CALLER, traceparent: `${CALLER.traceparent}-x` }))
      await waitForRun(await start(gatewayUrl, workflow, { tracestate: CALLER.tracestate }))
      const [traced, ...others] = await endpoint.waitForRequests(3)
      expect(traced!.headers).toMatchObject(CALLER)
      for (const { headers } of others) {
        expect(Object.keys(headers)).not.toContain('traceparent')
        expect(Object.keys(headers)).not.toContain('tracestate')
      }
      const token = String(traced!.headers['x-service-token'])
      expect(await checkServiceToken(token, SIGNING_SECRET)).toMatchObject({ ok: true })
      for (const [index, name] of Object.keys(envs).entries()) {
        await processes[index]!.stop()
        const loaded = processes[index]!.stderr.split('\n').filter((line) => line.startsWith('loaded '))
        // Prisma would double the memory of the others.
        expect(name === 'app' ? loaded.filter((line) => line.includes('@opentelemetry')) : loaded).toEqual([])
      }
      expect(receiver.spans()).toEqual([])
    },
    TIMEOUT_MS,
  )
})
