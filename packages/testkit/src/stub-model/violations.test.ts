import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startStubModelServer, type StubModelServer } from '../start-stub-model-server.ts'
import { checkRequest } from './check-request.ts'
import type { ReadRequest } from './turn.ts'

// That valid requests of the real clients are accepted, and read in the same form, is tested where they are used:
// `violations` is empty there for all five APIs.

const schema = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
const [name, description] = ['send', 'Sends it.']
const call = { id: '1', name, arguments: { id: '1' } }
const valid: ReadRequest = {
  messages: [
    { role: 'user', parts: [{ text: 'go' }] },
    { role: 'assistant', parts: [{ call }] },
    { role: 'user', parts: [{ result: { id: '1', text: 'sent' } }] },
  ],
  tools: [{ name, description, schema }],
}

/** The request with the value at the path replaced, or removed if it is undefined. */
function change(path: string, value: unknown): ReadRequest {
  const copy = structuredClone(valid)
  const keys = path.split('.')
  const last = keys.pop()!
  let target = copy as unknown as Record<string, unknown>
  for (const key of keys) target = target[key] as Record<string, unknown>
  if (value === undefined && Array.isArray(target)) target.splice(Number(last), 1)
  else if (value === undefined) delete target[last]
  else target[last] = value
  return copy
}

test.each<[what: string, path: string, value: unknown, message: RegExp]>([
  ['a tool name with a space', 'tools.0.name', 'send it', /expected pattern/],
  ['a tool name that is too long', 'tools.0.name', 'x'.repeat(129), /expected pattern/],
  ['two tools of the same name', 'tools.1', { name, schema }, /names must be unique/],
  ['a long description', 'tools.0.description', 'x'.repeat(1_025), /longer than/],
  ['no messages', 'messages', [], /must start with a user message/],
  ['a result without its call', 'messages.1', undefined, /must have the results/],
  ['a call without its result', 'messages.2', undefined, /must end with a user message/],
  ['a call twice', 'messages.1.parts.1', { call }, /be unique/],
  ['a blank text', 'messages.0.parts.0.text', ' \n', /must be non-empty/],
  ['an answer first', 'messages.0.role', 'assistant', /must start with a user message/],
  ['another role', 'messages.0.role', 'tool', /role 'tool' is unknown/],
  ['a schema of another type', 'tools.0.schema.type', 'string', /of 'type: "object"'/],
  ['no schema', 'tools.0.schema', undefined, /must be a schema/],
  ['an unknown type', 'tools.0.schema.properties.id.type', 'text', /not a type/],
  ['a list without items', 'tools.0.schema.properties.id.type', 'array', /missing items/],
  ['a field that is not defined', 'tools.0.schema.required', ['nothing'], /not defined \(nothing\)/],
  ['an empty object', 'tools.0.schema.properties.id.type', 'object', /non-empty for OBJECT/],
  ['an unknown keyword', 'tools.0.schema.properties.id.const', 'x', /Unknown name "const"/],
  ['a field without a type', 'tools.0.schema.properties.id', {}, /type or anyOf/],
  ['a field name with a dash', 'tools.0.schema.properties.a-b', { type: 'string' }, /Property keys/],
])('every stub rejects %s', (_what, path, value, message) => {
  expect(() => checkRequest(change(path, value), {})).toThrow(message)
})

let server: StubModelServer
beforeAll(async () => {
  server = await startStubModelServer({ otherwise: { text: 'Fine.' } })
})
afterAll(() => server.close())

const post = async (path: string, body: object, headers: Record<string, string>) =>
  await fetch(server.baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })

const geminiCall = { functionCall: { name, args: { id: '1' } } }

test.each<[what: string, path: string, body: object, message: string]>([
  ['an answer that OpenAI has not stored', '/responses', { input: [{ type: 'item_reference' }] }, 'not found'],
  ['reasoning that OpenAI has not stored', '/responses', { input: [{ type: 'reasoning' }] }, 'not persisted'],
  [
    'thinking without its signature',
    '/messages',
    { messages: [{ role: 'user', content: [{ type: 'thinking' }] }] },
    'signature',
  ],
  [
    'a call without the signature of Gemini 3',
    '/models/gemini-3-pro:generateContent',
    { contents: [{ role: 'model', parts: [geminiCall] }] },
    'thought_signature',
  ],
])('a stub rejects %s as its API does, and notes why', async (_what, path, body, message) => {
  const before = server.violations.length
  const response = await post(path, body, { authorization: 'Bearer key', 'x-goog-api-key': 'key' })
  expect({ status: response.status, text: await response.text() }).toEqual({
    status: 400,
    text: expect.stringContaining(message),
  })
  expect(server.violations.slice(before)).toEqual([expect.stringContaining(message)])
})

test.each(['/messages', '/models/gemini-2.5-pro:generateContent', '/model/anthropic.claude/converse'])(
  'the stub at %s demands a key',
  async (path) => {
    expect(await post(path, {}, {})).toMatchObject({ status: 401 })
  },
)
