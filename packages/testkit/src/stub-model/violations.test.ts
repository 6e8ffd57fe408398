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

const tool = {
  openai: 'tools.0',
  'openai-compatible': 'tools.0.function',
  anthropic: 'tools.0',
  google: 'tools.0.functionDeclarations.0',
  bedrock: 'toolConfig.tools.0.toolSpec',
}
const list = {
  openai: 'input',
  'openai-compatible': 'messages',
  anthropic: 'messages',
  google: 'contents',
  bedrock: 'messages',
}
const user = {
  openai: { role: 'user', content: [{ type: 'input_text', text: 'and?' }] },
  'openai-compatible': { role: 'user', content: 'and?' },
  anthropic: { role: 'user', content: 'and?' },
  google: { role: 'user', parts: [{ text: 'and?' }] },
  bedrock: { role: 'user', content: [{ text: 'and?' }] },
}
const tools = {
  openai: 'tools',
  'openai-compatible': 'tools',
  anthropic: 'tools',
  google: 'tools.0.functionDeclarations',
  bedrock: 'toolConfig.tools',
}
const parameters = {
  openai: 'parameters',
  'openai-compatible': 'parameters',
  anthropic: 'input_schema',
  google: 'parametersJsonSchema',
  bedrock: 'inputSchema.json',
}
type Protocol = keyof typeof tool

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

  const [definition] = tools[protocol]
    .split('.')
    .reduce<unknown>((value, key) => (value as Body)[key], body) as unknown[]
  test.each<[string, string, unknown]>([
    ['an unknown field', 'colour', 'red'],
    ['no messages', list[protocol], []],
    ['a result without its call', list[protocol], [items[0], items[2]]],
    ['a call without its result', list[protocol], [items[0], items[1]]],
    ['a message between a call and its result', list[protocol], [items[0], items[1], user[protocol]]],
    ['a tool name with a space', `${tool[protocol]}.name`, 'send it'],
    ['a tool name that is too long', `${tool[protocol]}.name`, 'x'.repeat(129)],
    ['two tools of the same name', tools[protocol], [definition, definition]],
    ['a tool whose arguments are no object', `${tool[protocol]}.${parameters[protocol]}`, { type: 'string' }],
    ['a schema with an unknown type', `${tool[protocol]}.${parameters[protocol]}.properties.id.type`, 'text'],
    ['a list without items', `${tool[protocol]}.${parameters[protocol]}.properties.id.type`, 'array'],
    ['a required field that is not defined', `${tool[protocol]}.${parameters[protocol]}.required`, ['nothing']],
  ])('rejects %s', async (_what, path, value) => {
    const before = server.violations.length
    const { status, text } = await send(protocol, change(body, path, value))
    expect({ status, text }).toMatchObject({ status: 400, text: expect.stringContaining('message') })
    expect(server.violations).toHaveLength(before + 1)
  })
})

const long = 'x'.repeat(1_025)
const twoParts = { type: 'object', properties: { a: { type: 'string' } } }
test.each<[Protocol, string, string, unknown, RegExp]>([
  ['openai', 'a long description', 'tools.0.description', long, /string too long/],
  [
    'openai',
    'a strict tool with an optional field',
    'tools.0',
    {
      type: 'function',
      name,
      parameters: { ...twoParts, additionalProperties: false },
      strict: true,
    },
    /'required' is required/,
  ],
  ['openai', 'too few tokens', 'max_output_tokens', 15, /at least 16/],
  ['openai', 'an answer that is not stored', 'input.0', { type: 'item_reference', id: 'rs_1' }, /not found/],
  ['openai', "the user's part in an answer", 'input.0.role', 'assistant', /'output_text' and 'refusal'/],
  ['openai-compatible', 'a long description', 'tools.0.function.description', long, /string too long/],
  [
    'openai-compatible',
    'stream options without a stream',
    'stream_options',
    { include_usage: true },
    /'stream' is enabled/,
  ],
  ['openai-compatible', 'a tool choice without tools', 'tool_choice', 'auto', /./],
  ['openai-compatible', 'a long call id', 'messages.1.tool_calls.0.id', 'x'.repeat(41), /maximum length 40/],
  ['anthropic', 'no max_tokens', 'max_tokens', undefined, /max_tokens.*Field required/],
  ['anthropic', 'an empty text', 'messages.0.content', [{ type: 'text', text: '' }], /must be non-empty/],
  ['anthropic', 'a blank text', 'messages.0.content', [{ type: 'text', text: ' \n' }], /non-whitespace text/],
  ['anthropic', 'an answer first', 'messages.0.role', 'assistant', /must start with a user message/],
  [
    'anthropic',
    'another field name',
    'tools.0.input_schema',
    { type: 'object', properties: { 'ü b': {} } },
    /Property keys/,
  ],
  ['anthropic', 'anyOf at the top', 'tools.0.input_schema', { ...schema, anyOf: [{}] }, /at the top level/],
  [
    'anthropic',
    'text before a result',
    'messages.2.content',
    [
      { type: 'text', text: 'x' },
      { type: 'tool_result', tool_use_id: 'toolu_1' },
    ],
    /before all text/,
  ],
  [
    'google',
    'an empty object',
    'tools.0.functionDeclarations.0.parametersJsonSchema.properties',
    {},
    /non-empty for OBJECT|not defined/,
  ],
  [
    'google',
    'a nested empty object',
    'tools.0.functionDeclarations.0.parametersJsonSchema.properties.id',
    { type: 'object', properties: {} },
    /non-empty for OBJECT/,
  ],
  [
    'google',
    'an unknown keyword',
    'tools.0.functionDeclarations.0.parametersJsonSchema.properties.id.const',
    'x',
    /Unknown name \\"const\\"/,
  ],
  [
    'google',
    'a field without a type',
    'tools.0.functionDeclarations.0.parametersJsonSchema.properties.id',
    {},
    /type or anyOf/,
  ],
  [
    'google',
    'a field name with a dash',
    'tools.0.functionDeclarations.0.parametersJsonSchema',
    { type: 'object', properties: { 'a-b': { type: 'string' } } },
    /Property keys/,
  ],
  ['google', 'an empty text', 'contents.0.parts', [{ text: '' }], /required oneof field/],
  ['google', 'another role', 'contents.0.role', 'assistant', /valid role/],
  ['bedrock', 'a blank text', 'messages.0.content', [{ text: ' ' }], /is blank/],
  ['bedrock', 'an answer first', 'messages.0.role', 'assistant', /must start with a user message/],
  ['bedrock', 'two user messages', 'messages', [user.bedrock, user.bedrock], /must alternate/],
  ['bedrock', 'calls without tools', 'toolConfig', undefined, /toolConfig field must be defined/],
  ['bedrock', 'an empty description', 'toolConfig.tools.0.toolSpec.description', '', /expected pattern/],
  ['bedrock', 'two members of a union', 'messages.0.content.0.cachePoint', { type: 'default' }, /exactly one member/],
])('the stub of %s rejects %s', async (protocol, _what, path, value, message) => {
  const { body } = valid[protocol]!
  const changed = change(body, path, value)
  if (path === 'tool_choice') delete changed['tools']
  const { status, text } = await send(protocol, changed)
  expect(text).toMatch(message)
  expect(status).toBeGreaterThanOrEqual(400)
})

test.each<[string, Protocol, string, Body]>([
  ['max_tokens', 'openai-compatible', '/chat/completions', { model: 'gpt-5', max_tokens: 5 }],
  ['a temperature', 'openai', '/responses', { model: 'o3', temperature: 1 }],
  ['a temperature', 'anthropic', '/messages', { model: 'claude-opus-4-7', temperature: 0 }],
  ['a top_k', 'anthropic', '/messages', { model: 'claude-sonnet-5', top_k: 5 }],
  ['a field of a beta without its header', 'anthropic', '/messages', { speed: 'fast' }],
  ['a call without its signature', 'google', '/models/gemini-3-pro:generateContent', {}],
  [
    'a cache point',
    'bedrock',
    '/model/meta.llama/converse',
    { system: [{ text: 'x' }, { cachePoint: { type: 'default' } }] },
  ],
])('rejects %s with a model that does not take it', async (_what, protocol, path, changes) => {
  const { status } = await send(protocol, { ...valid[protocol]!.body, ...changes }, { path })
  expect(status).toBeGreaterThanOrEqual(400)
})

test.each<[Protocol]>([['anthropic'], ['google'], ['bedrock']])('the stub of %s demands a key', async (protocol) => {
  const { status } = await send(protocol, valid[protocol]!.body, { headers: {} })
  expect(status).toBeGreaterThanOrEqual(400)
})
