import { afterEach, describe, expect, test } from '@jest/globals'
import {
  type ModelProtocolName,
  type ModelTurn,
  startStubModelServer,
  type StubModelServer,
} from '@workflow-service/testkit'
import { createInMemoryRun, type InMemoryRun, webhookSource } from '../../../test/support/in-memory-run.ts'
import { modelConfig } from '../../../test/support/model-config.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { createModelAgent } from './model-agent.ts'

const PROVIDERS: ModelProtocolName[] = ['openai', 'openai-compatible', 'anthropic', 'google', 'bedrock']
const VARIANTS = PROVIDERS.flatMap((provider) => [
  [provider, 'whole', false] as const,
  [provider, 'streamed', true] as const,
])

const orders = webhookSource('Order intake', { order_id: 'A-1', total: 9.5 })
/** A source with everything that some API refuses: names, types, empty objects, long texts. */
const oddExample = {
  'Order ID': 'A',
  extra: {},
  note: null,
  tags: [],
  lines: [{ meta: {}, '2nd': [1, 'x', null] }],
  big: 'x'.repeat(5_000),
}
const sources = [webhookSource('Anything', {}), orders, webhookSource('Ünusual & odd', oddExample, 'd'.repeat(3_000))]
const files = [{ id: 'f1', name: 'prices.md', path: ['docs'], content: '# Prices' }]

const sendOrder = { name: 'send_to_order_intake', arguments: { order_id: 'B-7', total: 42.5 } }
const sendOther = { name: 'send_to_order_intake', arguments: { order_id: 'B-8', total: 1 } }
const sends: ModelTurn = { toolCalls: [sendOrder] }
const endRun = { name: 'end_run', arguments: { status: 'done', reason: 'As asked.' } }
const ends: ModelTurn = ({ conversation }) =>
  conversation.tools.some(({ name }) => name === endRun.name) ? { toolCalls: [endRun] } : { text: 'Done.' }

let servers: StubModelServer[] = []
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()))
  servers = []
})

async function startServer(turns: ModelTurn[]): Promise<StubModelServer> {
  const server = await startStubModelServer({ turns })
  servers.push(server)
  return server
}

/** How a run with these answers of the model ends: its error, and what it sent. */
async function execute(
  provider: ModelProtocolName,
  isStreaming: boolean,
  turns: ModelTurn[],
  changes: Partial<ModelConfig> = {},
): Promise<{ error: string | null; sent: unknown[]; run: InMemoryRun; server: StubModelServer }> {
  const server = await startServer(turns)
  const clock = { now: Date.now, random: () => 0, sleep: () => Promise.resolve() }
  const agent = createModelAgent(modelConfig({ provider, isStreaming, baseUrl: server.baseUrl, ...changes }), {}, clock)
  const run = createInMemoryRun({
    sources,
    files,
    context: 'Order B-7 for 42.50',
    endpoint: ({ payload }) => ('order_id' in payload ? {} : { outcome: 'invalid', reason: 'order_id is missing' }),
  })
  const error = await run.execute(agent).then(
    () => null,
    (reason: unknown) => (reason as { code?: string }).code ?? String(reason),
  )
  const sent = run.sent.flatMap(({ payload }) => ('order_id' in payload ? [payload['order_id']] : []))
  return { error, sent, run, server }
}

interface Oddity {
  readonly turns: ModelTurn[]
  readonly error?: string
  readonly sent: string[]
  readonly config?: Partial<ModelConfig>
  readonly only?: ModelProtocolName[]
}

const failing = (status: number, code?: string): ModelTurn => ({ failure: 'status', status, ...(code ? { code } : {}) })

const ODDITIES: Record<string, Oddity> = {
  'two calls': { turns: [{ toolCalls: [sendOrder, sendOther] }, ends], sent: ['B-7', 'B-8'] },
  'two calls with one id': {
    turns: [
      {
        toolCalls: [
          { id: 'call_0', ...sendOrder },
          { id: 'call_0', ...sendOther },
        ],
      },
      ends,
    ],
    sent: ['B-7', 'B-8'],
  },
  'text and a call': { turns: [{ text: 'I send it.', toolCalls: [sendOrder] }, ends], sent: ['B-7'] },
  'blank text and a call': { turns: [{ text: ' \n', toolCalls: [sendOrder] }, ends], sent: ['B-7'] },
  'reasoning and a call': { turns: [{ reasoning: 'An order.', toolCalls: [sendOrder] }, ends], sent: ['B-7'] },
  'a call without arguments': { turns: [{ toolCalls: [{ ...sendOrder, arguments: {} }] }, sends, ends], sent: ['B-7'] },
  'a call of a tool that takes none': {
    turns: [{ toolCalls: [{ name: 'list_files', arguments: {} }] }, sends, ends],
    sent: ['B-7'],
  },
  'arguments that are empty text': {
    turns: [{ toolCalls: [{ name: 'list_files', arguments: '' }] }, sends, ends],
    sent: ['B-7'],
    only: ['openai', 'openai-compatible'],
  },
  'arguments that break off': {
    turns: [{ toolCalls: [{ ...sendOrder, arguments: '{"order_id": "B-' }] }, sends, ends],
    sent: ['B-7'],
  },
  'arguments that are a list': {
    turns: [{ toolCalls: [{ ...sendOrder, arguments: [1] }] }, sends, ends],
    sent: ['B-7'],
  },
  'a call of an unknown tool': {
    turns: [{ toolCalls: [{ name: 'drop tables!', arguments: {} }] }, sends, ends],
    sent: ['B-7'],
  },
  'a call that is cut off': {
    turns: [{ toolCalls: [sendOrder], finishReason: 'length' }, ends],
    error: 'model_answer_cut_off',
    sent: [],
  },
  'a refusal': { turns: [{ text: 'I cannot.', finishReason: 'refusal' }, ends], error: 'model_refused', sent: [] },
  'a filtered answer': {
    turns: [{ text: 'Well', finishReason: 'content_filter' }, ends],
    error: 'model_refused',
    sent: [],
  },
  'a filtered prompt': { turns: [{ failure: 'prompt_blocked' }, ends], error: 'model_refused', sent: [] },
  'no answer at all': { turns: [{}, {}, ends], error: 'model_answer_invalid', sent: [] },
  'an answer without calls, twice': {
    turns: [{ text: 'Done.' }, { text: 'Done!' }, ends],
    error: 'model_answer_invalid',
    sent: [],
  },
  'a paused answer': { turns: [{ text: 'Wait', finishReason: 'pause' }, sends, ends], sent: ['B-7'] },
  'an unknown reason to end': { turns: [{ text: 'Hm', finishReason: 'unknown' }, sends, ends], sent: ['B-7'] },
  'status 429': { turns: [failing(429), failing(429), sends, ends], sent: ['B-7'] },
  'status 500': { turns: [failing(500), sends, failing(500), ends], sent: ['B-7'] },
  'status 503': { turns: [sends, failing(503), ends], sent: ['B-7'] },
  'status 529': { turns: [failing(529), sends, ends], sent: ['B-7'] },
  'an error page': { turns: [{ failure: 'status', status: 502, body: '<html>' }, sends, ends], sent: ['B-7'] },
  'another body': { turns: [{ failure: 'status', status: 200, body: '{"hello": 1}' }, sends, ends], sent: ['B-7'] },
  'status 401': { turns: [failing(401)], error: 'model_unauthorized', sent: [] },
  'status 404': { turns: [failing(404)], error: 'model_not_found', sent: [] },
  'a quota that is used up': {
    turns: [{ failure: 'status', status: 429, code: 'insufficient_quota', message: 'insufficient_quota' }],
    error: 'model_quota_exceeded',
    sent: [],
  },
  'a reset': { turns: [{ failure: 'reset' }, sends, { failure: 'reset' }, ends], sent: ['B-7'] },
  'an answer that breaks off': { turns: [{ toolCalls: [sendOrder], isCutOff: true }, sends, ends], sent: ['B-7'] },
  'a slow drip': { turns: [{ toolCalls: [sendOrder], dripMs: 1 }, ends], sent: ['B-7'] },
  'a drip that takes too long': {
    turns: [{ text: 'x'.repeat(500), toolCalls: [sendOrder], dripMs: 100 }],
    config: { timeoutMs: 300, retryMs: 0 },
    error: 'model_unavailable',
    sent: [],
  },
  silence: {
    turns: [{ failure: 'hang' }],
    config: { timeoutMs: 300, retryMs: 0 },
    error: 'model_unavailable',
    sent: [],
  },
  'a huge answer': {
    turns: [{ text: 'x'.repeat(9 * 1_048_576), toolCalls: [sendOrder] }, ends],
    error: 'model_answer_invalid',
    sent: [],
  },
}

describe.each(VARIANTS)('a run with a model of %s, %s', (provider, _form, isStreaming) => {
  const oddities = Object.entries(ODDITIES).filter(([, { only }]) => !only || only.includes(provider))
  test.each(oddities)('ends as it should after %s', async (_name, { turns, error = null, sent, config = {} }) => {
    const result = await execute(provider, isStreaming, turns, config)
    expect(result.server.violations).toEqual([])
    expect({ error: result.error, sent: result.sent }).toEqual({ error, sent })
  })
})
