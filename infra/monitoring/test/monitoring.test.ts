import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import {
  type ReceivedSpan,
  sendRaw,
  SPAN_KINDS,
  startCustomerEndpoint,
  startOtlpReceiver,
  startStubModelServer,
  waitUntil,
} from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { parse } from 'yaml'
import { createCustomer, type Customer, SIGNING_SECRET, startWorkflow } from '../../trials/shared/customers.ts'
import { send as request } from '../../trials/shared/load.ts'
import { SECRETS_KEY, type Service, startTestSystem, type System } from '../../trials/shared/system.ts'
import { type Promql, readPromql } from './support/read-promql.ts'

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly labels?: { readonly severity: string }
  readonly annotations?: { readonly summary: string }
}
interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const { groups } = parse(read('../rules.yaml')) as { groups: { name: string; rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const recorded = new Set(rules.map(({ record }) => record))
const { panels } = JSON.parse(read('../dashboard.json')) as { panels: Panel[] }

/** Every expression with the place where it is. */
const expressions: [string, string][] = [
  ...rules.map(({ alert, record, expr }): [string, string] => [`rule ${alert ?? record}`, expr]),
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }): [string, string] => [`panel ${title}`, expr.replaceAll('$__rate_interval', '5m')]),
  ),
]

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

function parseMetrics(text: string): Sample[] {
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
    name,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, content]) => [label, content]),
    ),
    value: Number(value),
  }))
}

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const CALLER_SPAN_ID = 'b7ad6b7169203331'
const CALLER = { traceparent: `00-${TRACE_ID}-${CALLER_SPAN_ID}-01`, tracestate: 'vendor=value' }
const MODEL_KEY = 'sk-test-0123456789abcdef'
const RECEIVER_KEY = 'receiver-key-0123456789'
const SECRET_PATH = '/hooks/secret-path-0123456789'

const START_SPAN = 'POST /v1/workflows/{workflow_id}/start'
const DELIVERY_SPAN = 'sendPayload'

const send = { name: 'send_to_order_intake', arguments: { text: 'cockatoo' } }
const end = { name: 'end_run', arguments: { status: 'done', reason: 'The cockatoo has landed.' } }

/** A runner with a lease of 1.5 s. */
const RUNNER = [
  fileURLToPath(new URL('../../../services/runner/test/support/runner-process.ts', import.meta.url)),
  JSON.stringify({ leaseMs: 1_500, renewMs: 300, sweepMs: 200 }),
]

/** Starts services, each in a process of its own, with a customer whose endpoint is this URL. */
async function startServices(endpointUrl: string, env: Readonly<Record<string, string>>) {
  const system = await startTestSystem({ env })
  await system.start('dispatcher')
  const [gateway, runner] = await Promise.all([
    system.start('gateway'),
    system.start('runner', { program: RUNNER }),
    system.start('app'),
  ])
  return { ...system, gateway, runner, customer: await createCustomer(system, [''], endpointUrl) }
}

/** What the services of a test talk to, and the settings with which they do. Closed by `await using`. */
async function openOutside() {
  const turns = [{ text: 'A macaw it is.', toolCalls: [send] }, { toolCalls: [end] }]
  const [endpoint, receiver, model] = await Promise.all([
    startCustomerEndpoint({ answer: { body: 'kakapo' } }),
    startOtlpReceiver(),
    startStubModelServer({ turns: [...turns, ...turns] }),
  ])
  return {
    endpoint,
    receiver,
    tracingEnv: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: `x-receiver-key=${RECEIVER_KEY}`,
    },
    modelEnv: { AGENT_MODEL: 'openai-compatible:stub-1', AGENT_BASE_URL: model.baseUrl, AGENT_API_KEY: MODEL_KEY },
    async [Symbol.asyncDispose]() {
      await Promise.all([endpoint.close(), receiver.close(), model.close()])
    },
  }
}

/** Starts the workflow, and resolves to the id of the run. */
const start = async ({ url }: Service, customer: Customer, headers = {}): Promise<string> =>
  await startWorkflow(url, customer, 'A parrot for Ada Lovelace', headers)

async function waitForRun({ pool }: System, runId: string): Promise<void> {
  await waitUntil(
    async () => {
      const query = 'SELECT status, error FROM starts WHERE id = $1'
      const [run] = (await pool.query<{ status: string; error: string | null }>(query, [runId])).rows
      if (run?.status === 'failed') throw new Error(`The run failed: ${run.error}`)
      return run?.status === 'succeeded'
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

async function scrape({ services }: System): Promise<Sample[]> {
  const texts = await Promise.all(services.map(({ metricsUrl }) => request(`${metricsUrl}/metrics`)))
  return texts.flatMap(parseMetrics)
}

/** The metrics before and after one start with a model. Every metric with labels has a sample. */
let samplesOfFirstScrape: Sample[]
let samples: Sample[]
/** What came of that start, and of one whose runner was killed. */
let traced: Awaited<ReturnType<typeof traceTwoStarts>>

beforeAll(async () => {
  traced = await traceTwoStarts()
})

async function traceTwoStarts() {
  await using outside = await openOutside()
  const { endpoint, receiver } = outside
  const env = { ...outside.tracingEnv, ...outside.modelEnv }
  await using system = await startServices(endpoint.url + SECRET_PATH, env)
  const { gateway, customer } = system
  samplesOfFirstScrape = await scrape(system)
  const runId = await start(gateway, customer, CALLER)
  await sendRaw(gateway.url, 'not HTTP\r\n\r\n')
  await waitUntil(
    async () => (await scrape(system)).some(({ name, value }) => name === 'runner_runs_total' && value > 0),
    { timeoutMs: 60_000, intervalMs: 200, message: 'the run to end' },
  )
  // In the scrape that found the end, another service may have answered before it.
  samples = await scrape(system)
  const [delivered] = await endpoint.waitForRequests(1, 60_000)
  const interruptedTrace = await interruptStart(system, outside)
  await system.stopServices()
  const spansOf = (id: string | undefined) => receiver.spans().filter(({ traceId }) => traceId === id)
  return {
    customer,
    token: system.internalHeaders.authorization,
    runId,
    delivered: delivered!,
    spans: spansOf(TRACE_ID),
    exported: receiver.text(),
    interrupted: spansOf(interruptedTrace),
    requests: endpoint.requests.length,
  }
}

/** Kills the runner of a start while the endpoint has the payload. Resolves to the trace, which the gateway begins. */
async function interruptStart(
  system: Awaited<ReturnType<typeof startServices>>,
  { endpoint, receiver }: Pick<Awaited<ReturnType<typeof openOutside>>, 'endpoint' | 'receiver'>,
): Promise<string | undefined> {
  const { gateway, runner, customer } = system
  const gate = Promise.withResolvers<void>()
  endpoint.answerWith(async () => {
    await gate.promise
    return { status: 204 }
  })
  const runId = await start(gateway, customer)
  const [, delivered] = await endpoint.waitForRequests(2, 60_000)
  const trace = String(delivered!.headers['traceparent']).split('-')[1]
  await receiver.waitForSpans((spans) => {
    const ofTrace = spans.filter(({ traceId }) => traceId === trace)
    const hasWaited = ofTrace.some(({ attributes }) => attributes['workflow_service.run.attempt'] === 1)
    return hasWaited && ofTrace.some(({ name }) => name.startsWith('chat'))
  }, 'the spans of the first attempt that have ended')
  await runner.kill()
  gate.resolve()
  const accepted = `SELECT FROM deliveries WHERE run_id = $1 AND outcome = 'accepted'`
  await waitUntil(async () => (await system.pool.query(accepted, [runId])).rowCount === 1)
  await runner.restart()
  await waitForRun(system, runId)
  return trace
}

describe('the expressions of the dashboard and of the rules', () => {
  test.each(expressions)('%s reads metrics and labels that the services export', (_where, expression) => {
    const { selectors, groupings }: Promql = readPromql(expression)
    expect(selectors).not.toEqual([])
    for (const { metric, matchers } of selectors) {
      if (recorded.has(metric)) continue
      const found = samples.filter(({ name }) => name === metric)
      expect([metric, found.length > 0]).toEqual([metric, true])
      for (const label of [...groupings, ...matchers.map((matcher) => matcher.label)]) {
        expect([metric, label, found.every(({ labels }) => label in labels)]).toEqual([metric, label, true])
      }
      for (const { label, operator, value } of matchers) {
        if (operator !== '=' && operator !== '!=') continue
        expect(found.map(({ labels }) => labels[label])).toContain(value)
      }
    }
  })

  test('are read with their metrics, conditions and groups, and an error in one is found', () => {
    expect(() => readPromql('sum(rate(a[5m])')).toThrow(SyntaxError)
    expect(() => readPromql('sum by (a b) (c)')).toThrow(SyntaxError)
    expect(readPromql('sum by (a) (b{c="d"})')).toEqual({
      selectors: [{ metric: 'b', matchers: [{ label: 'c', operator: '=', value: 'd' }] }],
      groupings: ['a'],
    })
  })
})

test.each(['sessions_waiting', 'sessions_waiting_oldest_seconds', 'session_queue_messages'])(
  '%s is exported by one process only, so that a sum is right',
  (metric) => {
    for (const scraped of [samplesOfFirstScrape, samples]) {
      const found = scraped.filter(({ name }) => name === metric)
      const queues = metric === 'session_queue_messages' ? ['ready', 'dead'] : [undefined]
      expect(found.map(({ labels }) => labels['queue'])).toEqual(queues)
    }
  },
)

test('each alert has a severity, a summary and a row in the troubleshooting of docs/operations.md', () => {
  const troubleshooting = read('../../../docs/operations.md').split('## Troubleshooting')[1] ?? ''
  const firstCells = [...troubleshooting.matchAll(/^\|(.*?)\|/gm)].map(([, cell = '']) => cell).join('\n')
  expect(alerts).not.toEqual([])
  for (const { alert, labels, annotations } of alerts) {
    expect(['page', 'ticket']).toContain(labels?.severity)
    expect(annotations?.summary).toBeTruthy()
    expect(firstCells).toContain(`\`${alert}\``)
  }
})

describe('with OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  test("a start's spans are one tree in the caller's trace, from the API call to the endpoint", async () => {
    const { customer, token: internalToken, runId, delivered, spans, exported } = traced
    const parents = new Map(spans.map(({ spanId, name }) => [spanId, name]))
    parents.set(CALLER_SPAN_ID, 'the caller')
    const tree = spans.map(({ service, kind, name, parentSpanId = '' }) => {
      return { service, kind, name, parent: parents.get(parentSpanId) }
    })
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

    const traceparent = `00-${TRACE_ID}-${named(spans, 'POST')[0]!.spanId}-01`
    expect(delivered.headers).toMatchObject({ traceparent, tracestate: CALLER.tracestate })
    const token = String(delivered.headers['x-service-token'])
    expect(await checkServiceToken(token, SIGNING_SECRET)).toMatchObject({ ok: true })
    expect(named(spans, 'deliver')[0]!.attributes).toMatchObject({
      'workflow_service.run.id': runId,
      'workflow_service.delivery.outcome': 'accepted',
    })

    const secrets = [SIGNING_SECRET, token, MODEL_KEY, RECEIVER_KEY, customer.apiKey, SECRET_PATH.slice(1), SECRETS_KEY]
    const texts = ['parrot', 'Ada', '@trial', 'cockatoo', 'macaw', 'kakapo', 'rder intake', 'order_intake', 'Trial']
    for (const text of [...secrets, internalToken.replace('Bearer ', ''), ...texts])
      expect(exported).not.toContain(text)
  })

  test("both attempts of a run whose runner was killed are in the start's trace", () => {
    const { interrupted: spans, requests } = traced
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
    // With that of the first start.
    expect(requests).toBe(2)
  })
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
  test("no service loads the SDK, only the application Prisma and YAML, and the caller's trace reaches the endpoint unchanged", async () => {
    await using outside = await openOutside()
    const { endpoint } = outside
    await using system = await startServices(endpoint.url, { NODE_OPTIONS: REPORT_LOADED })
    const { gateway, customer } = system
    await waitForRun(system, await start(gateway, customer, CALLER))
    // Invalid, and absent: nothing is passed on.
    const invalid = { ...CALLER, traceparent: `${CALLER.traceparent}-x` }
    await waitForRun(system, await start(gateway, customer, invalid))
    await waitForRun(system, await start(gateway, customer, { tracestate: CALLER.tracestate }))
    const [passedOn, ...others] = await endpoint.waitForRequests(3)
    expect(passedOn!.headers).toMatchObject(CALLER)
    const names = others.flatMap(({ headers }) => Object.keys(headers))
    expect(names.filter((name) => name.startsWith('trace'))).toEqual([])
    await system.stopServices()
    for (const service of system.services) {
      const lines = service.output().split('\n')
      const loaded = lines.filter((line) => line.startsWith('loaded '))
      // Prisma would double the memory of the others.
      expect([service.name, loaded.length > 0]).toEqual([service.name, service.name === 'app'])
      expect(loaded.filter((line) => line.includes('@opentelemetry'))).toEqual([])
    }
  })
})
