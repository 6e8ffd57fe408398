import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startStubModelServer, type StubModelServer } from '../start-stub-model-server.ts'

type Body = Record<string, unknown>

let server: StubModelServer

beforeAll(async () => {
  server = await startStubModelServer({ otherwise: { text: 'Fine.' } })
})
afterAll(() => server.close())

const schema = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
const [name, description] = ['send', 'Sends it.']

/** A request that each API accepts: a question, a call, its result. */
const valid: Record<string, { path: string; headers: Record<string, string>; body: Body }> = {
  openai: {
    path: '/responses',
    headers: { authorization: 'Bearer key' },
    body: {
      model: 'gpt-4.1',
      store: false,
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'go' }] },
        { type: 'function_call', call_id: 'call_1', name, arguments: '{"id":"1"}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'sent' },
      ],
      tools: [{ type: 'function', name, description, parameters: schema, strict: false }],
    },
  },
  'openai-compatible': {
    path: '/chat/completions',
    headers: { authorization: 'Bearer key' },
    body: {
      model: 'gpt-4.1',
      messages: [
        { role: 'user', content: 'go' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: '{"id":"1"}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'sent' },
      ],
      tools: [{ type: 'function', function: { name, description, parameters: schema } }],
    },
  },
  anthropic: {
    path: '/messages',
    headers: { 'x-api-key': 'key', 'anthropic-version': '2023-06-01' },
    body: {
      model: 'claude',
      max_tokens: 100,
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name, input: { id: '1' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sent' }] },
      ],
      tools: [{ name, description, input_schema: schema }],
    },
  },
  google: {
    path: '/models/gemini-2.5-pro:generateContent',
    headers: { 'x-goog-api-key': 'key' },
    body: {
      contents: [
        { role: 'user', parts: [{ text: 'go' }] },
        { role: 'model', parts: [{ functionCall: { name, args: { id: '1' } } }] },
        { role: 'user', parts: [{ functionResponse: { name, response: { result: 'sent' } } }] },
      ],
      tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema: schema }] }],
    },
  },
  bedrock: {
    path: '/model/anthropic.claude/converse',
    headers: { authorization: 'Bearer key' },
    body: {
      messages: [
        { role: 'user', content: [{ text: 'go' }] },
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'tooluse_1', name, input: { id: '1' } } }] },
        { role: 'user', content: [{ toolResult: { toolUseId: 'tooluse_1', content: [{ text: 'sent' }] } }] },
      ],
      toolConfig: { tools: [{ toolSpec: { name, description, inputSchema: { json: schema } } }] },
    },
  },
}

async function send(protocol: string, body: Body, changes: { path?: string; headers?: Record<string, string> } = {}) {
  const { path, headers } = { ...valid[protocol]!, ...changes }
  const response = await fetch(`${server.baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, text: await response.text() }
}

/** The body with the value at the path replaced, or removed if it is undefined. */
function change(body: Body, path: string, value: unknown): Body {
  const copy = structuredClone(body)
  const keys = path.split('.')
  const last = keys.pop()!
  let target = copy
  for (const key of keys) target = target[key] as Body
  if (value === undefined && Array.isArray(target)) target.splice(Number(last), 1)
  else if (value === undefined) delete target[last]
  else target[last] = value
  return copy
}

const list = {
  openai: 'input',
  'openai-compatible': 'messages',
  anthropic: 'messages',
  google: 'contents',
  bedrock: 'messages',
}

type Protocol = keyof typeof list

describe.each(Object.keys(valid) as Protocol[])('the stub of %s', (protocol) => {
  const { body } = valid[protocol]!
  const items = body[list[protocol]] as unknown[]

  test('accepts a valid request and shows its conversation', async () => {
    expect(await send(protocol, body)).toMatchObject({ status: 200 })
    expect(server.requests.at(-1)?.conversation).toMatchObject({
      messages: [
        { role: 'user', text: 'go' },
        { role: 'assistant', calls: [{ name, arguments: { id: '1' } }] },
        { role: 'user', results: [{ text: expect.stringContaining('sent') }] },
      ],
      tools: [{ name, description, schema }],
    })
  })

  test.each<[string, unknown]>([
    ['no messages', []],
    ['a message of another form', [7]],
    ['a result without its call', [items[0], items[2]]],
    ['a call without its result', [items[0], items[1]]],
  ])('rejects %s', async (_what, messages) => {
    const before = server.violations.length
    const { status, text } = await send(protocol, change(body, list[protocol], messages))
    expect({ status, text }).toMatchObject({ status: 400, text: expect.stringContaining('message') })
    expect(server.violations).toHaveLength(before + 1)
  })
})

test.each<[Protocol, string, string, unknown, RegExp]>([
  ['openai', 'a tool name with a space', 'tools.0.name', 'send it', /expected pattern/],
  ['openai', 'a tool name that is too long', 'tools.0.name', 'x'.repeat(129), /expected pattern/],
  ['openai', 'two tools of the same name', 'tools.1', { name, parameters: schema }, /names must be unique/],
  ['openai', 'a long description', 'tools.0.description', 'x'.repeat(1_025), /longer than/],
  ['openai', 'a call twice', 'input.3', { type: 'function_call', call_id: 'call_1', arguments: '{}' }, /be unique/],
  ['openai', 'an answer that is not stored', 'input.0', { type: 'item_reference', id: 'rs_1' }, /not found/],
  ['openai', 'reasoning that is not stored', 'input.1', { type: 'reasoning' }, /not persisted/],
  ['anthropic', 'an empty text', 'messages.0.content', [{ type: 'text', text: '' }], /must be non-empty/],
  ['anthropic', 'a blank text', 'messages.0.content', [{ type: 'text', text: ' \n' }], /must be non-empty/],
  ['anthropic', 'an answer first', 'messages.0.role', 'assistant', /must start with a user message/],
  ['anthropic', 'another role', 'messages.0.role', 'tool', /role 'tool' is unknown/],
  ['anthropic', 'thinking without its signature', 'messages.1.content.0', { type: 'thinking' }, /signature/],
  ['openai', 'a schema of another type', 'tools.0.parameters.type', 'string', /of 'type: \\"object\\"'/],
  ['openai', 'no schema', 'tools.0.parameters', undefined, /must be a schema/],
  ['openai', 'an unknown type', 'tools.0.parameters.properties.id.type', 'text', /not a type/],
  ['openai', 'a list without items', 'tools.0.parameters.properties.id.type', 'array', /missing items/],
  ['openai', 'a field that is not defined', 'tools.0.parameters.required', ['nothing'], /not defined \(nothing\)/],
  ['openai', 'an empty object', 'tools.0.parameters.properties.id.type', 'object', /non-empty for OBJECT/],
  ['openai', 'an unknown keyword', 'tools.0.parameters.properties.id.const', 'x', /Unknown name \\"const\\"/],
  ['openai', 'a field without a type', 'tools.0.parameters.properties.id', {}, /type or anyOf/],
  ['openai', 'a field name with a dash', 'tools.0.parameters.properties.a-b', { type: 'string' }, /Property keys/],
])('the stub of %s rejects %s', async (protocol, _what, path, value, message) => {
  const { status, text } = await send(protocol, change(valid[protocol]!.body, path, value))
  expect(text).toMatch(message)
  expect(status).toBe(400)
})

test('a call without its signature is rejected with a model that demands it', async () => {
  const path = '/models/gemini-3-pro:generateContent'
  expect((await send('google', valid['google']!.body, { path })).text).toContain('thought_signature')
})

test.each<[Protocol]>([['anthropic'], ['google'], ['bedrock']])('the stub of %s demands a key', async (protocol) => {
  expect(await send(protocol, valid[protocol]!.body, { headers: {} })).toMatchObject({ status: 401 })
})
