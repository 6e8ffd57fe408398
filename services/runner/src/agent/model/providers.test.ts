import { expect, test } from '@jest/globals'
import type { ModelProtocolName, ModelTurn, StubModelServer } from '@workflow-service/testkit'
import { createInMemoryRun, webhookSource } from '../../../test/support/in-memory-run.ts'
import {
  callTool as calls,
  createClock,
  PROVIDERS,
  streaming,
  useModelAgent,
} from '../../../test/support/model-agent.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { RunParkedError } from '../../run-errors.ts'

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

const send = (id: string) => ({ name: 'send_to_order_intake', arguments: { order_id: id, total: 42.5 } })
const sends = (...ids: string[]): ModelTurn => ({ toolCalls: ids.map(send) })
const endRun = { name: 'end_run', arguments: { status: 'done', reason: 'As asked.' } }
const ends: ModelTurn = ({ conversation }) =>
  conversation.tools.some(({ name }) => name === endRun.name) ? { toolCalls: [endRun] } : { text: 'Done.' }

const model = useModelAgent()

/** How a run with these answers of the model ends: its error, and what it sent. */
async function execute(
  provider: ModelProtocolName,
  isStreaming: boolean,
  turns: ModelTurn[],
  changes: Partial<ModelConfig> = {},
): Promise<{ error: string | null; sent: unknown[]; server: StubModelServer }> {
  const agent = await model.start({ turns }, { provider, isStreaming, clock: createClock(), ...changes })
  const run = createInMemoryRun({
    sources,
    files,
    context: 'Order B-7 for 42.50',
    endpoint: ({ payload }) => ('order_id' in payload ? {} : { outcome: 'invalid', reason: 'order_id is missing' }),
  })
  const error = await run.errorOf(agent)
  const sent = run.sent.flatMap(({ payload }) => ('order_id' in payload ? [payload['order_id']] : []))
  return { error: error ? (error.code ?? String(error)) : null, sent, server: model.server }
}

const failing = (status: number, body?: string): ModelTurn => ({ failure: 'status', status, ...(body ? { body } : {}) })

/** Answers after which a run goes on, in the order in which one run gets them. It sends the orders 1 to 9. */
const oddTurns = (provider: ModelProtocolName): ModelTurn[] => [
  {
    text: 'I send three.',
    toolCalls: [{ id: 'call_0', ...send('1') }, { id: 'call_0', ...send('2') }, send('3')],
  },
  { text: ' \n', toolCalls: [send('4')] },
  { reasoning: 'An order.', toolCalls: [send('5')] },
  failing(429),
  failing(529),
  calls('send_to_order_intake', {}),
  failing(503),
  calls('list_files', {}),
  ...(provider.startsWith('openai') ? [calls('list_files', '')] : []),
  failing(200, '{"hello": 1}'),
  calls('drop tables!', {}),
  calls('', {}),
  failing(502, '<html>'),
  calls('send_to_order_intake', '{"order_id": "B-'),
  { failure: 'reset' },
  calls('send_to_order_intake', '{"order_id": "not exact", "total": 12345678901234567890}'),
  { toolCalls: [send('breaks off')], isCutOff: true },
  calls('send_to_order_intake', [1]),
  calls('list_files', {}),
  { text: 'Wait', finishReason: 'pause' },
  sends('6'),
  { text: 'Hm', finishReason: 'unknown' },
  sends('7', '8'),
  sends('9'),
  ends,
]

test.each(VARIANTS)(
  'a run with a model of %s, %s, goes on after any odd answer',
  async (provider, _form, isStreaming) => {
    const { error, sent, server } = await execute(provider, isStreaming, oddTurns(provider))
    expect(server.violations).toEqual([])
    expect(server.requests.every((request) => request.isStreaming === isStreaming)).toBe(true)
    expect({ error, sent, left: server.left }).toEqual({ error: null, sent: Array.from('123456789'), left: 0 })
  },
)

const many = {
  name: 'send_to_order_intake',
  arguments: { order_id: '2', list: Array.from({ length: 20_000 }, () => 1.5) },
}

/** Answers after which a run fails: of each model, or of a compatible one alone, as one code counts those of all. */
const FATAL: [what: string, code: string, turns: ModelTurn[], config?: Partial<ModelConfig>][] = [
  ['a call that is cut off', 'model_answer_cut_off', [{ toolCalls: [send('1')], finishReason: 'length' }]],
  ['a refusal', 'model_refused', [{ text: 'I cannot.', finishReason: 'refusal' }]],
  ['a filtered answer', 'model_refused', [{ text: 'Well', finishReason: 'content_filter' }]],
  ['a filtered prompt', 'model_refused', [{ failure: 'prompt_blocked' }]],
  ['no answer twice', 'model_answer_invalid', [{}, {}]],
]
const FATAL_OF_ONE: typeof FATAL = [
  ['too many list items', 'model_answer_invalid', [{ toolCalls: [many, send('1'), many] }]],
  ['too many calls', 'model_answer_invalid', [{ toolCalls: Array.from({ length: 101 }, () => send('1')) }]],
  [
    'an answer that drips for too long',
    'model_unavailable',
    [{ text: 'x'.repeat(500), toolCalls: [send('1')], dripMs: 100 }],
    // Long enough for the request to arrive.
    { timeoutMs: 1_000, maxWaitMs: 0 },
  ],
  ['a huge answer', 'model_answer_invalid', [{ text: 'x'.repeat(9 * 1_048_576), toolCalls: [send('1')] }]],
]

test.each(
  VARIANTS.flatMap(([provider, form, isStreaming]) =>
    (provider === 'openai-compatible' ? [...FATAL, ...FATAL_OF_ONE] : FATAL).map(
      ([what, code, turns, config]) => [provider, form, what, code, { isStreaming, turns, config }] as const,
    ),
  ),
)('a run with a model of %s, %s, sends nothing after %s: %s', async (provider, _form, _what, code, more) => {
  const { error, sent, server } = await execute(provider, more.isStreaming, [...more.turns, ends], more.config)
  expect(server.violations).toEqual([])
  expect({ error, sent, left: server.left }).toEqual({ error: code, sent: [], left: 1 })
})

const ending = (message: string, code: number): ModelTurn => streaming({ error: { message, code } })

test('an error as the end of a stream is one of its status, and not an answer that cannot be read six times', async () => {
  const turns = [...Array.from({ length: 7 }, () => ending('Overloaded', 429)), sends('1'), ends]
  expect(await execute('openai-compatible', true, turns)).toMatchObject({ error: null, sent: ['1'] })
  const spent = await execute('openai-compatible', true, [ending('insufficient_quota', 429), ends])
  expect(spent.error).toMatch(/^model_quota_exceeded/)
  const unknown = Array.from({ length: 6 }, () => ending('policy', 500))
  expect((await execute('openai-compatible', true, [...unknown, ends])).error).toMatch(/^model_answer_invalid/)
})

const refusing = (status: number, error: object): ModelTurn => failing(status, JSON.stringify({ error }))
const anthropicStart = {
  type: 'message_start',
  message: { id: 'msg_1', model: 'm', role: 'assistant', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
}
const anthropicError = (type: string, message: string) => ({ type: 'error', error: { type, message } })
const anthropicText = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Well' } }
const openAiStart = { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'm' } }
const FLAGGED = 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.'
const BLOCKED = 'Output blocked by content filtering policy'
const failedResponse = (code: string, message = 'It failed'): ModelTurn =>
  failing(200, JSON.stringify({ id: 'resp_1', status: 'failed', error: { code, message }, output: [] }))
const chatChunk = (delta: object) => ({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }] })
const chatError = (error: object): ModelTurn =>
  streaming(chatChunk({ content: 'Well' }), { error: { message: 'It broke', ...error } })
const cutCall = {
  index: 0,
  id: 'call_1',
  type: 'function',
  function: { name: 'send_to_order_intake', arguments: '{}' },
}

test.each<[ModelProtocolName, what: string, code: string, ModelTurn, isStreaming?: boolean]>([
  [
    'openai',
    'an inactive account',
    'model_quota_exceeded',
    refusing(429, { code: 'billing_not_active', message: 'No' }),
  ],
  [
    'anthropic',
    'the limit of spending',
    'model_quota_exceeded',
    refusing(400, { type: 'invalid_request_error', message: 'You have reached your specified API usage limits.' }),
  ],
  [
    'anthropic',
    'the limit of a contract',
    'model_quota_exceeded',
    refusing(429, { type: 'rate_limit_error', message: 'No', details: { error_code: 'contract_spend_limit_reached' } }),
  ],
  ['anthropic', 'a bill', 'model_quota_exceeded', refusing(402, { type: 'billing_error', message: 'No' })],
  [
    'google',
    'a key that is not valid',
    'model_unauthorized',
    refusing(400, {
      code: 400,
      message: 'API key not valid. Please pass a valid API key.',
      status: 'INVALID_ARGUMENT',
    }),
  ],
  [
    'openai-compatible',
    'a prompt too long for a stream',
    'model_request_refused',
    chatError({ type: 'invalid_request_error', code: 'context_length_exceeded' }),
    true,
  ],
  [
    'bedrock',
    'a model that needs a profile',
    'model_not_found',
    failing(400, '{"message":"Invocation of model ID m with on-demand throughput isn’t supported."}'),
  ],
  [
    'bedrock',
    'an unknown model',
    'model_not_found',
    failing(400, '{"message":"The provided model identifier is invalid."}'),
  ],
  [
    'bedrock',
    'a context that is full',
    'model_answer_cut_off',
    failing(
      200,
      JSON.stringify({
        output: { message: { role: 'assistant', content: [{ text: 'I send' }] } },
        stopReason: 'model_context_window_exceeded',
        usage: { inputTokens: 9, outputTokens: 1, totalTokens: 10 },
      }),
    ),
  ],
  ['openai', 'a prompt that is flagged', 'model_refused', refusing(400, { code: 'invalid_prompt', message: FLAGGED })],
  ['openai', 'a response that is flagged', 'model_refused', failedResponse('invalid_prompt', FLAGGED)],
  [
    'anthropic',
    'an answer that is blocked',
    'model_refused',
    refusing(400, { type: 'invalid_request_error', message: BLOCKED }),
  ],
  [
    'anthropic',
    'an answer that is blocked within',
    'model_refused',
    streaming(anthropicStart, anthropicText, anthropicError('invalid_request_error', BLOCKED)),
    true,
  ],
])(
  'a run with a model of %s makes one request after %s: %s',
  async (provider, _what, code, turn, isStreaming = false) => {
    const { error, sent, server } = await execute(provider, isStreaming, [turn, ends])
    expect({ error, sent, left: server.left }).toEqual({ error: code, sent: [], left: 1 })
  },
)

test.each<[ModelProtocolName, what: string, isStreaming: boolean, ModelTurn]>([
  ['bedrock', 'a model that failed', false, failing(424, '{"message":"An error while processing the model."}')],
  ['openai', 'a response that failed', false, failedResponse('server_error')],
  ['openai', 'a response that was limited', false, failedResponse('rate_limit_exceeded')],
  ['openai-compatible', 'an error with the status 200', false, refusing(200, { code: 502, message: 'Down' })],
  ['anthropic', 'a time-out', true, streaming(anthropicStart, anthropicError('timeout_error', 'Too slow'))],
  ['anthropic', 'an error inside', true, streaming(anthropicStart, anthropicError('api_error', 'It broke'))],
  ['openai-compatible', 'an error inside', true, chatError({ type: 'server_error', code: null })],
  ['openai-compatible', 'a limit inside', true, chatError({ type: 'tokens', code: 'rate_limit_exceeded' })],
  ['openai-compatible', 'a 402 with a delay', false, { failure: 'status', status: 402, retryAfterSeconds: 1 }],
  ['anthropic', 'an end without a reason', true, streaming(anthropicStart)],
  ['openai', 'an end without a reason', true, streaming(openAiStart)],
  ['google', 'an end without a reason', true, streaming({})],
  ['openai-compatible', 'an end without a reason', true, streaming(chatChunk({ tool_calls: [cutCall] }))],
  ['bedrock', 'an end without a reason', true, streaming()],
])(
  'a run with a model of %s waits for the end of an outage after %s, streaming: %s',
  async (provider, _what, ...more) => {
    const [isStreaming, turn] = more
    // More of them than of answers that cannot be read, after which the run would fail.
    const outage = Array.from({ length: 7 }, () => turn)
    const changes = { maxWaitMs: 0 }
    const inTime = await execute(provider, isStreaming, [turn, sends('1'), ends])
    expect({ ...inTime, server: null }).toEqual({ error: null, sent: ['1'], server: null })
    const { error, sent } = await execute(provider, isStreaming, [...outage, ends], changes)
    expect({ error, sent }).toEqual({ error: 'model_unavailable', sent: [] })
  },
)

const order = { order_id: 'é 1', total: 42.5 }
const unknownBlock = { type: 'hologram', depth: 3 }
const toolUse = { type: 'tool_use', id: 'toolu_1', name: 'send_to_order_intake' }
const anthropicAnswer = {
  ...anthropicStart.message,
  type: 'message',
  content: [unknownBlock, { ...toolUse, input: order }],
  stop_reason: 'tool_use',
}
const block = (index: number, ...deltas: object[]) => [
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const functionCall = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'send_to_order_intake',
  arguments: JSON.stringify(order),
  status: 'completed',
}
const openAiAnswer = {
  ...openAiStart.response,
  status: 'completed',
  output: [unknownBlock, functionCall],
  usage: { input_tokens: 9, output_tokens: 1 },
}

test.each<[ModelProtocolName, isStreaming: boolean, ModelTurn]>([
  ['anthropic', false, failing(200, JSON.stringify(anthropicAnswer))],
  ['openai', false, failing(200, JSON.stringify(openAiAnswer))],
  [
    'anthropic',
    true,
    streaming(
      anthropicStart,
      { ...unknownBlock, type: 'weather' },
      { type: 'content_block_start', index: 0, content_block: unknownBlock },
      ...block(0, { type: 'text_delta', text: 'a' }),
      { type: 'content_block_start', index: 1, content_block: { ...toolUse, input: {} } },
      ...block(1, { type: 'input_json_delta', partial_json: JSON.stringify(order) }, unknownBlock),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { output_tokens: 1 },
      },
      { type: 'message_stop' },
    ),
  ],
  [
    'openai',
    true,
    streaming(
      openAiStart,
      unknownBlock,
      { type: 'response.output_item.added', output_index: 0, item: unknownBlock },
      { type: 'response.output_item.done', output_index: 0, item: unknownBlock },
      { type: 'response.output_item.added', output_index: 1, item: { ...functionCall, arguments: '' } },
      { type: 'response.output_item.done', output_index: 1, item: functionCall },
      { type: 'response.completed', response: openAiAnswer },
    ),
  ],
])(
  'a run with a model of %s goes on after an answer with parts and events of new types, streaming: %s',
  async (provider, isStreaming, turn) => {
    const { error, sent, server } = await execute(provider, isStreaming, [turn, ends])
    expect({ error, sent, left: server.left }).toEqual({ error: null, sent: ['é 1'], left: 0 })
  },
)

const OUTAGES: ModelTurn[] = [
  failing(503),
  failing(500),
  failing(502, '<html>'),
  { failure: 'reset' },
  { text: 'A long answer that never comes to its end', isCutOff: true },
]

test.each([false, true])(
  'an outage of 60 s, however it shows, loses no run and sends nothing twice, streaming: %s',
  async (isStreaming) => {
    const clock = createClock()
    const endMs = clock.nowMs + 60_000
    let failures = 0
    const failsUntilEnd: ModelTurn = (request, index) => {
      const isOver = clock.nowMs >= endMs
      const current = isOver ? ends : OUTAGES[failures++ % OUTAGES.length]!
      if (!isOver) model.server.script(failsUntilEnd)
      return typeof current === 'function' ? current(request, index) : current
    }
    const agent = await model.start({ turns: [sends('1'), failsUntilEnd] }, { isStreaming, clock })
    const run = createInMemoryRun({ sources })
    const executeToEnd = (): Promise<void> =>
      run.execute(agent).catch((error: unknown) => {
        if (!(error instanceof RunParkedError)) throw error
        clock.nowMs += error.delayMs
        return executeToEnd()
      })
    await executeToEnd()
    expect(run.sent).toHaveLength(1)
    expect(clock.nowMs).toBeGreaterThanOrEqual(endMs)
    expect(failures).toBeGreaterThanOrEqual(OUTAGES.length)
    expect(model.server.left).toBe(0)
  },
)
