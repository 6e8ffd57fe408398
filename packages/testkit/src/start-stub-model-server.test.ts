import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { APICallError, generateText, jsonSchema, streamText, tool, type LanguageModel } from 'ai'
import { startStubModelServer, type StubModelServer } from './start-stub-model-server.ts'
import type { ModelTurn } from './stub-model/turn.ts'

const tools = {
  send_order: tool({
    description: 'Sends an order',
    inputSchema: jsonSchema<{ order: number }>({
      type: 'object',
      properties: { order: { type: 'integer' } },
      required: ['order'],
    }),
  }),
}

let server: StubModelServer

beforeEach(async () => {
  server = await startStubModelServer()
})

afterEach(async () => {
  await server.close()
})

const settings = () => ({ baseURL: server.baseUrl, apiKey: 'key' })
const models: [string, () => LanguageModel][] = [
  ['openai', () => createOpenAI(settings()).responses('test-model')],
  ['openai-compatible', () => createOpenAICompatible({ name: 'stub', ...settings() })('test-model')],
  ['anthropic', () => createAnthropic(settings())('test-model')],
  ['google', () => createGoogle(settings())('test-model')],
  ['bedrock', () => createAmazonBedrock({ region: 'eu-central-1', ...settings() })('test-model')],
]

/** What a client of the AI SDK makes of a turn, asked for whole and as a stream. */
async function ask(model: LanguageModel, turn: ModelTurn, isStreaming: boolean) {
  server.script(turn)
  const call = { model, prompt: 'go', tools, maxRetries: 0, maxOutputTokens: 1000 }
  if (!isStreaming) {
    const { text, toolCalls, finishReason, usage } = await generateText(call)
    return { text, toolCalls, finishReason, usage }
  }
  let failure: unknown
  const result = streamText({ ...call, onError: ({ error }) => void (failure = error) })
  await result.consumeStream()
  if (failure !== undefined) throw failure
  const [text, toolCalls, finishReason, usage] = await Promise.all([
    result.text,
    result.toolCalls,
    result.finishReason,
    result.usage,
  ])
  return { text, toolCalls, finishReason, usage }
}

describe.each(models)('startStubModelServer, as the %s client understands it', (protocol, createModel) => {
  describe.each([
    ['whole', false],
    ['streamed', true],
  ])('%s', (_name, isStreaming) => {
    test('answers text with its usage', async () => {
      const turn = { text: 'Bonjour, 世界 👋', usage: { inputTokens: 12, outputTokens: 7 } }
      const output = await ask(createModel(), turn, isStreaming)
      expect(output).toMatchObject({ text: 'Bonjour, 世界 👋', finishReason: 'stop', toolCalls: [] })
      expect(output.usage).toMatchObject({ inputTokens: 12, outputTokens: 7 })
      expect(server.requests).toMatchObject([{ protocol, isStreaming, model: 'test-model' }])
      expect(server.violations).toEqual([])
    })

    test('calls two tools at once', async () => {
      const toolCalls = [
        { id: 'call-1', name: 'send_order', arguments: { order: 1 } },
        { id: 'call-2', name: 'send_order', arguments: { order: 2 } },
      ]
      const output = await ask(createModel(), { text: 'Sending.', toolCalls }, isStreaming)
      expect(output).toMatchObject({
        text: 'Sending.',
        finishReason: 'tool-calls',
        toolCalls: [
          { toolCallId: 'call-1', toolName: 'send_order', input: { order: 1 } },
          { toolCallId: 'call-2', toolName: 'send_order', input: { order: 2 } },
        ],
      })
    })

    test('calls tools that do not exist', async () => {
      const output = await ask(createModel(), { toolCalls: [{ name: 'no_such_tool', arguments: {} }] }, isStreaming)
      expect(output.toolCalls).toMatchObject([{ toolName: 'no_such_tool', invalid: true }])
    })

    test('calls tools with malformed arguments', async () => {
      const toolCalls = [{ name: 'send_order', arguments: '{"order": ' }]
      const output = await ask(createModel(), { toolCalls }, isStreaming)
      // Of two protocols, the input is JSON within JSON only in a stream; in a whole answer it cannot be malformed, but
      // no object.
      const isJson = ['anthropic', 'bedrock'].includes(protocol) && !isStreaming
      const calls = protocol === 'google' ? [] : [isJson ? { input: '{"order": ' } : { invalid: true }]
      expect(output).toMatchObject({ toolCalls: calls, finishReason: protocol === 'google' ? 'error' : 'tool-calls' })
    })

    test('ends because of the length limit', async () => {
      const output = await ask(createModel(), { text: 'And then', finishReason: 'length' }, isStreaming)
      expect(output).toMatchObject({ text: 'And then', finishReason: 'length' })
    })

    test('breaks the connection in the middle of an answer', async () => {
      const turn = { text: 'A long answer that never comes to its end', isCutOff: true }
      await expect(ask(createModel(), turn, isStreaming)).rejects.toThrow(/./)
    })

    test('answers an error status with the delay that it asks for', async () => {
      const turn: ModelTurn = { failure: 'status', status: 429, message: 'slow down', retryAfterSeconds: 3 }
      const failure = await ask(createModel(), turn, isStreaming).catch((error: unknown) => error)
      expect(APICallError.isInstance(failure)).toBe(true)
      expect(failure).toMatchObject({
        statusCode: 429,
        message: expect.stringContaining('slow down'),
        isRetryable: true,
      })
      const { responseHeaders, responseBody = '' } = failure as APICallError
      const delay = /"retryDelay":"(\d+)s"/.exec(responseBody)?.[1] ?? responseHeaders?.['retry-after']
      expect([delay, protocol === 'google']).toEqual(['3', !responseHeaders?.['retry-after']])
    })

    test('resets the connection', async () => {
      await expect(ask(createModel(), { failure: 'reset' }, isStreaming)).rejects.toThrow('Cannot connect to API')
    })
  })

  test('hangs until the client aborts', async () => {
    server.script({ failure: 'hang' })
    const abortSignal = AbortSignal.timeout(100)
    const call = { model: createModel(), prompt: 'go', maxRetries: 0, maxOutputTokens: 1000, abortSignal }
    await expect(generateText(call)).rejects.toThrow('timeout')
  })

  test('answers in the order of the script, by the request, and with 400 after its end', async () => {
    server.script({ text: 'first' }, ({ model }, index) => ({ text: `${model} ${index}` }))
    const call = { model: createModel(), prompt: 'go', maxRetries: 2, maxOutputTokens: 1000 }
    expect((await generateText(call)).text).toBe('first')
    expect((await generateText(call)).text).toBe('test-model 1')
    expect(server.left).toBe(0)
    await expect(generateText(call)).rejects.toThrow('The stub model has no turn left')
    expect(server.requests).toHaveLength(3)
  })
})
