import { describe, expect, test } from '@jest/globals'
import type { ModelProtocolName, ModelTurn, StubModelServer } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { createInMemoryRun, type InMemoryRun, webhookSource } from '../../../test/support/in-memory-run.ts'
import { modelConfig } from '../../../test/support/model-config.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { RunParkedError } from '../../run-errors.ts'
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

const startModelServer = useStubModel()

/** How a run with these answers of the model ends: its error, and what it sent. */
async function execute(
  provider: ModelProtocolName,
  isStreaming: boolean,
  turns: ModelTurn[],
  changes: Partial<ModelConfig> = {},
): Promise<{ error: string | null; sent: unknown[]; run: InMemoryRun; server: StubModelServer }> {
  const server = await startModelServer({ turns })
  const clock = { now: Date.now, random: () => 0, sleep: () => Promise.resolve() }
  const agent = createModelAgent(
    [modelConfig({ provider, isStreaming, baseUrl: server.baseUrl, ...changes })],
    {},
    clock,
  )
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
  'arguments with a number that is not exact': {
    turns: [
      { toolCalls: [{ ...sendOrder, arguments: '{"order_id": "B-9", "total": 12345678901234567890}' }] },
      sends,
      ends,
    ],
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
  'a paused answer': { turns: [{ text: 'Wait', finishReason: 'pause' }, sends, ends], sent: ['B-7'] },
  'an unknown reason to end': { turns: [{ text: 'Hm', finishReason: 'unknown' }, sends, ends], sent: ['B-7'] },
  'status 429': { turns: [failing(429), failing(429), sends, ends], sent: ['B-7'] },
  'status 503': { turns: [sends, failing(503), ends], sent: ['B-7'] },
  'an error page': { turns: [{ failure: 'status', status: 502, body: '<html>' }, sends, ends], sent: ['B-7'] },
  'another body': { turns: [{ failure: 'status', status: 200, body: '{"hello": 1}' }, sends, ends], sent: ['B-7'] },
  'a reset': { turns: [{ failure: 'reset' }, sends, { failure: 'reset' }, ends], sent: ['B-7'] },
  'an answer that breaks off': { turns: [{ toolCalls: [sendOrder], isCutOff: true }, sends, ends], sent: ['B-7'] },
  'a drip that takes too long': {
    turns: [{ text: 'x'.repeat(500), toolCalls: [sendOrder], dripMs: 100 }],
    config: { timeoutMs: 300, maxWaitMs: 0 },
    only: ['openai-compatible'],
    error: 'model_unavailable',
    sent: [],
  },
  'a huge answer': {
    turns: [{ text: 'x'.repeat(9 * 1_048_576), toolCalls: [sendOrder] }, ends],
    error: 'model_answer_invalid',
    only: ['openai-compatible'],
    sent: [],
  },
  'too many calls': {
    turns: [{ toolCalls: Array.from({ length: 101 }, () => sendOrder) }, ends],
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
    // Where nothing was sent, no further request followed.
    expect(result.server.left).toBe(error !== null && sent.length === 0 && turns.at(-1) === ends ? 1 : 0)
  })
})

describe.each([false, true])('an outage of a model, streaming: %s', (isStreaming) => {
  const provider = 'openai-compatible'
  const outages: [string, ModelTurn][] = [
    ['503', { failure: 'status', status: 503 }],
    ['500', { failure: 'status', status: 500 }],
    ['a proxy that finds no server', { failure: 'status', status: 502, body: '<html>' }],
    ['broken connections', { failure: 'reset' }],
    ['answers that break off', { text: 'A long answer that never comes to its end', isCutOff: true }],
  ]
  test.each(outages)('of 60 s with %s loses no run, and sends nothing twice', async (_what, failure) => {
    let nowMs = Date.now()
    const endMs = nowMs + 60_000
    const failsUntil = (turn: ModelTurn, timeMs: number): ModelTurn => {
      const next: ModelTurn = (request, index) => {
        const current = nowMs < timeMs ? failure : turn
        if (nowMs < timeMs) server.script(next)
        return typeof current === 'function' ? current(request, index) : current
      }
      return next
    }
    const server = await startModelServer({ turns: [sends, failsUntil(ends, endMs)] })
    const sleep = async (delayMs: number) => void (nowMs += delayMs)
    const clock = { now: () => nowMs, random: () => 0, sleep }
    const agent = createModelAgent([modelConfig({ provider, isStreaming, baseUrl: server.baseUrl })], {}, clock)
    const run = createInMemoryRun({ sources })
    const executeToEnd = (): Promise<void> =>
      run.execute(agent).catch((error: unknown) => {
        if (!(error instanceof RunParkedError)) throw error
        nowMs += error.delayMs
        return executeToEnd()
      })
    await executeToEnd()
    expect(run.sent).toHaveLength(1)
    expect(nowMs).toBeGreaterThanOrEqual(endMs)
    expect(server.left).toBe(0)
  })

  test('parks its run for as long as the API asks for', async () => {
    const { run, error } = await execute(provider, isStreaming, [
      { failure: 'status', status: 503, retryAfterSeconds: 3_600 },
    ])
    expect(error).toMatch(/^RunParkedError: The model's API answered 503\. The run waits, and continues at .* UTC/)
    expect(run.steps.at(-1)).toMatchObject({ kind: 'note', data: { code: 'run_parked' } })
  })
})
