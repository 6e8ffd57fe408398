import { describe, expect, test } from '@jest/globals'
import type { ModelProtocolName, StubModelServer } from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import { jsonSchema, type ModelMessage, tool } from 'ai'
import { PROVIDERS } from '../../../test/support/model-agent.ts'
import { modelConfig } from '../../../test/support/model-config.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { toModelOptions } from '../model-options.ts'
import { createAskModel } from './ask-model.ts'
import { checkModelOptions } from './check-options.ts'

const inputSchema = jsonSchema({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })
const tools = { first: tool({ inputSchema }), second: tool({ inputSchema }) }
const messages: ModelMessage[] = [
  { role: 'user', content: 'go' },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: '\n' },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'first', input: { id: '1' } },
    ],
  },
  {
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId: 'call_1', toolName: 'first', output: { type: 'text', value: 'sent' } },
    ],
  },
  { role: 'assistant', content: [{ type: 'text', text: ' ' }] },
  { role: 'user', content: 'and?' },
]

let server: StubModelServer

const startModelServer = useStubModel()

/** Asks a stub of the provider, and gives the body of its request and the answer. */
async function ask(provider: ModelProtocolName, changes: Partial<ModelConfig> = {}) {
  const usage = {
    inputTokens: 1_000,
    cacheReadTokens: 700,
    cacheWriteTokens: 200,
    outputTokens: 50,
    reasoningTokens: 30,
  }
  server = await startModelServer({ otherwise: { text: 'Fine.', usage } })
  const config = modelConfig({ provider, baseUrl: server.baseUrl, ...changes })
  const answer = await createAskModel(config)({ instructions: 'Do it.', messages, tools }, new AbortController().signal)
  expect(server.violations).toEqual([])
  return { answer, request: server.requests[0]!, body: server.requests[0]!.body as Record<string, never> }
}

const BEDROCK_CLAUDE = { modelName: 'eu.anthropic.claude-sonnet-4-5-v1:0', aws: { region: 'eu-central-1' } }

describe('a request to a model', () => {
  test.each(PROVIDERS)('of %s has no blank text, and its answer counts the tokens', async (provider) => {
    const { answer, request } = await ask(provider)
    expect(request.conversation).toMatchObject({
      instructions: 'Do it.',
      tools: [{ name: 'first' }, { name: 'second' }],
    })
    expect(request.conversation.messages.at(-2)).toMatchObject({ role: 'assistant', text: '(no text)' })
    const hasWrites = provider !== 'google'
    expect(answer).toMatchObject({
      parts: [{ type: 'text', text: 'Fine.' }],
      finishReason: 'stop',
      usage: { input_tokens: 1_000, cache_read_tokens: 700, output_tokens: 50 },
    })
    expect(answer.usage.cache_write_tokens ?? 0).toBe(hasWrites ? 200 : 0)
    expect(answer.usage.reasoning_tokens ?? 0).toBe(provider === 'bedrock' ? 0 : 30)
    expect(answer.responseId).toMatch(/^(resp_|chatcmpl-|msg_|[0-9a-f]{24}$|[0-9a-f]{8}-)/)
  })

  test('of Anthropic marks the tools, the instructions, the first and the last message for its cache', async () => {
    const { body } = await ask('anthropic')
    const mark = { cache_control: { type: 'ephemeral' } }
    expect(body).toMatchObject({
      system: [mark],
      tools: [{ name: 'first' }, { name: 'second', ...mark }],
      messages: [{ content: [mark] }, {}, {}, {}, { content: [mark] }],
    })
    expect(JSON.stringify(body).split('cache_control')).toHaveLength(5)
  })

  test('of Claude on Bedrock has cache points, and that of another model has none', async () => {
    const { body, request } = await ask('bedrock', BEDROCK_CLAUDE)
    expect(request.model).toBe(BEDROCK_CLAUDE.modelName)
    expect(body['system']).toEqual([{ text: 'Do it.' }, { cachePoint: { type: 'default' } }])
    expect(JSON.stringify(body).split('cachePoint')).toHaveLength(4)
    await server.close()
    const { body: other } = await ask('bedrock', { modelName: 'meta.llama4', aws: { region: 'eu-central-1' } })
    expect(JSON.stringify(other)).not.toContain('cachePoint')
  })

  test('of Bedrock is signed with the access key when there is no API key', async () => {
    const aws = { region: 'eu-central-1', accessKeyId: 'AKIATEST', secretAccessKey: 'secret', sessionToken: 'session' }
    const { request } = await ask('bedrock', { ...BEDROCK_CLAUDE, apiKey: null, aws })
    expect(request.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIATEST\/\d+\/eu-central-1\/bedrock\//)
    expect(request.headers['x-amz-security-token']).toBe('session')
  })

  test('of OpenAI stores nothing, and its tools are not strict', async () => {
    const { body } = await ask('openai')
    expect(body).toMatchObject({ store: false, tools: [{ strict: false }, { strict: false }] })
    expect(body).not.toHaveProperty('max_output_tokens')
  })

  test.each([
    ['gpt-4.1', { max_tokens: 500 }],
    ['gpt-5-mini', { max_completion_tokens: 500 }],
    ['openai/o3', { max_completion_tokens: 500 }],
  ])('of the compatible model %s limits the answer by the name that it takes', async (modelName, expected) => {
    const { body } = await ask('openai-compatible', { modelName, maxOutputTokens: 500 })
    expect(Object.fromEntries(Object.entries(body).filter(([name]) => name.startsWith('max_')))).toEqual(expected)
  })

  test.each([
    [8_192, 500, 500],
    [300, 500, 300],
    [null, 500, 500],
  ])('of a deployment with a name of its own has one limit: %j and the option %i', async (limit, option, expected) => {
    const options = toModelOptions({ max_completion_tokens: option })
    const { body } = await ask('openai-compatible', { modelName: 'chat-prod', maxOutputTokens: limit, options })
    expect(body).toMatchObject({ max_completion_tokens: expected })
    expect(body).not.toHaveProperty('max_tokens')
  })

  test.each<[ModelProtocolName, string, object]>([
    ['openai', '{"temperature": 0.5, "parallelToolCalls": false}', { temperature: 0.5, parallel_tool_calls: false }],
    ['openai-compatible', '{"seed": 7, "reasoningEffort": "low"}', { seed: 7, reasoning_effort: 'low' }],
    ['anthropic', '{"topK": 5, "thinking": {"type": "disabled"}}', { top_k: 5 }],
    [
      'google',
      '{"temperature": 0, "thinkingConfig": {"thinkingBudget": 0}}',
      { generationConfig: { temperature: 0, thinkingConfig: { thinkingBudget: 0 } } },
    ],
    [
      'bedrock',
      '{"topP": 0.5, "additionalModelRequestFields": {"a": 1}}',
      { inferenceConfig: { topP: 0.5 }, additionalModelRequestFields: { a: 1 } },
    ],
  ])('of %s has the options %s', async (provider, text, expected) => {
    const options = toModelOptions(JSON.parse(text) as object)
    const { body } = await ask(provider, { options })
    expect(body).toMatchObject(expected)
    await expect(
      checkModelOptions([modelConfig({ provider, baseUrl: server.baseUrl, options })]),
    ).resolves.toBeUndefined()
    expect(server.requests).toHaveLength(1)
  })

  test.each<[ModelProtocolName, string]>([
    ['openai', '{"reasoningEffort": 5}'],
    ['openai-compatible', '{"user": 5}'],
    ['anthropic', '{"thinking": "much"}'],
    ['google', '{"thinkingConfig": "much"}'],
    ['bedrock', '{"reasoningConfig": "much"}'],
    ['bedrock', '{"topK": 5}'],
  ])('of %s is not made with the options %s', async (provider, text) => {
    server = await startModelServer()
    const options = toModelOptions(JSON.parse(text) as object)
    const config = modelConfig({ provider, baseUrl: server.baseUrl, options })
    await expect(checkModelOptions([config])).rejects.toThrow(`AGENT_MODEL_OPTIONS are not options of ${provider}: `)
    expect(server.requests).toEqual([])
  })

  test.each(PROVIDERS)('of %s follows no redirect with the key', async (provider) => {
    await using other = await startModelServer({ otherwise: { text: 'Got it.' } })
    server = await startModelServer({ otherwise: { failure: 'redirect', location: `${other.baseUrl}/messages` } })
    const config = modelConfig({ provider, baseUrl: server.baseUrl })
    const answer = createAskModel(config)({ instructions: 'Do it.', messages, tools }, new AbortController().signal)
    await expect(answer).rejects.toMatchObject({
      code: 'model_request_refused',
      kind: 'permanent',
      detail: expect.stringContaining('redirect'),
    })
    expect([server.requests.length, other.requests.length]).toEqual([1, 0])
  })

  test.each(PROVIDERS)('of %s takes neither key nor URL from the environment', async (provider) => {
    const names = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY', 'AWS_BEARER_TOKEN_BEDROCK']
    const urls = ['OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL', 'AWS_ENDPOINT_URL']
    for (const name of names) process.env[name] = 'from-the-environment'
    for (const name of urls) process.env[name] = 'http://127.0.0.1:1'
    try {
      const { request } = await ask(provider, provider === 'bedrock' ? BEDROCK_CLAUDE : {})
      expect(JSON.stringify(request.headers)).not.toContain('from-the-environment')
      expect(JSON.stringify(request.headers)).toContain('sk-test-0123456789')
    } finally {
      for (const name of [...names, ...urls]) delete process.env[name]
    }
  })
})
