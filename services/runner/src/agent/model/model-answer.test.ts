import { describe, expect, test } from '@jest/globals'
import { compile, isJsonObject, listToolCalls, ModelAnswerStep, PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { anyCharacter } from '@workflow-service/testkit/any-character'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import { modelConfig, NO_USAGE as usage } from '../../../test/support/model-config.ts'
import type { ModelAnswer } from './model-question.ts'
import { parseArguments, toAnswerStep } from './model-answer.ts'
import { createToolbox } from './model-tools.ts'

const source = webhookSource('Order intake', { order_id: 'A-1' })
const open = { ...source, name: 'Open', exampleRequestBody: {} }
const toolbox = createToolbox([source, open], [])
const isAnswerStep = compile(ModelAnswerStep)

/** As the AI SDK gives them; its types allow less than a server may send. */
const anyText = fc.string({
  unit: fc.oneof(anyCharacter, fc.constantFrom('\0', '\ud800', '\udc00')),
})
const json = fc.jsonValue({ maxDepth: 1 })
const metadata = fc.option(fc.dictionary(anyText, fc.dictionary(anyText, json, { maxKeys: 2 }), { maxKeys: 2 }), {
  nil: undefined,
})
const callId = fc.oneof(fc.constantFrom('', 'call_1', 'call_1_1', 'call_2_1', 'call_2_2'), anyText)
const part = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'reasoning'), text: anyText, providerMetadata: metadata }),
  fc.record({
    type: fc.constant('tool-call'),
    callId,
    tool: fc.oneof(fc.constantFrom('send_to_order_intake', 'send_to_open'), anyText),
    input: fc.oneof(
      fc.json({ maxDepth: 2 }),
      fc.record({ order_id: anyText, fields: json }).map((input) => JSON.stringify(input)),
      anyText,
    ),
    providerMetadata: metadata,
  }),
)
const tokens = fc.option(fc.nat())
const answer = fc.record({
  parts: fc.array(part, { maxLength: 4 }),
  finishReason: anyText,
  rawFinishReason: fc.option(anyText),
  usage: fc.record({
    input_tokens: tokens,
    cache_read_tokens: tokens,
    cache_write_tokens: tokens,
    output_tokens: tokens,
    reasoning_tokens: tokens,
  }),
  responseId: fc.option(anyText),
}) as fc.Arbitrary<unknown> as fc.Arbitrary<ModelAnswer>

function toStep(given: ModelAnswer, ...earlierAnswers: ModelAnswerStep[]): ModelAnswerStep {
  const all = earlierAnswers.map((data) => ({ kind: 'model_answer' as const, data }))
  const ctx = { model: 'stub', config: modelConfig({ name: 'stub' }), steps: { all } }
  return toAnswerStep(ctx, { answer: given, latencyMs: 1.5, cost: null }, toolbox)
}

test('any answer of a model becomes a valid journal step, with a distinct id for each tool call of the run', () => {
  fc.assert(
    fc.property(answer, answer, (first, second) => {
      const earlier = toStep(first)
      const later = toStep(second, earlier)
      for (const step of [earlier, later]) {
        const stored: unknown = JSON.parse(JSON.stringify(step))
        expect([isAnswerStep(stored), isAnswerStep.errors]).toEqual([true, null])
        const { parts, ...rest } = step
        const texts = parts.flatMap((each) => (each.type === 'tool_call' ? each.tool : each.text))
        expect(JSON.stringify([texts, rest])).not.toMatch(/\\u0000|\\ud[89a-f]/)
      }
      const calls = [earlier, later].flatMap(listToolCalls)
      expect(new Set(calls.map(({ call_id }) => call_id)).size).toBe(calls.length)
      for (const { call_id, tool, source_id, fault, arguments: args } of calls) {
        expect(call_id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
        expect(source_id).toBe(tool.startsWith('send_to_o') ? source.id : null)
        const isOpen = tool === 'send_to_open'
        expect(isOpen || fault === null).toBe(isOpen || (source_id !== null && isJsonObject(args)))
      }
    }),
    { seed: 1, numRuns: 500 },
  )
})

/** A call of the tool whose payload has any fields. */
function callOpen(fields: unknown) {
  const call = { type: 'tool-call', callId: 'c', tool: 'send_to_open', input: JSON.stringify({ fields }) } as const
  return toStep({ parts: [call], finishReason: 'stop', rawFinishReason: null, usage, responseId: null }).parts[0]
}

describe('the arguments of a tool call', () => {
  test('give no payload of any fields that has one of them twice: one of its values would be lost', () => {
    const twice = ['a', 'b', 'a'].map((name, value) => ({ name, value }))
    expect(callOpen(twice)).toMatchObject({ fault: expect.stringContaining('each name once') })
    expect(callOpen(twice.slice(1))).toMatchObject({ fault: null, payload: { a: 2, b: 1 } })
  })

  test.each([['text'], [5], [true], [[1]], [[{ name: 'a' }]]])('give no payload of any fields from %j', (fields) => {
    expect(callOpen(fields)).toMatchObject({ fault: expect.stringContaining('fields must be a list of objects') })
    expect(callOpen([{ name: 'a', value: fields }])).toMatchObject({ fault: null, payload: { a: fields } })
  })

  test.each([
    ['{"a": 1}', { a: 1 }],
    ['', {}],
    [' \n', {}],
    ['{"a": [0.1, -0, 1e3, 1.50, 9007199254740991, 0.30000000000000004]}', undefined],
    ['{"a": [{"a": 1}, {"a": "\\"a\\": 1, \\"a\\": 2"}]}', { a: [{ a: 1 }, { a: '"a": 1, "a": 2' }] }],
  ])('are read from %j', (input, expected) => {
    expect(parseArguments(input)).toMatchObject({ fault: null, ...(expected ? { value: expected } : {}) })
  })

  test.each(['x', '\n'])('are read with a text of megabytes of %j', (text) => {
    expect(parseArguments(JSON.stringify({ a: text.repeat(4_000_000) })).fault).toBeNull()
  })

  test.each([
    '9007199254740993',
    '12345678901234567890',
    '-9007199254740992',
    '0.1000000000000000055',
    '1234567.12345678901234',
    '1e400',
  ])('are refused with the number %s, which would be rounded', (number) => {
    const { fault } = parseArguments(`{"order": {"id": ${number}}}`)
    expect(fault).toContain(`the number ${number} has more digits than can be sent exactly`)
  })

  test.each([
    ['{"a": 1', 'one JSON object'],
    ['[1]', 'one JSON object'],
    ['"text"', 'one JSON object'],
    ['null', 'one JSON object'],
    ['{"a": {"__proto__": 1}}', '__proto__'],
    ['{"a": [{"b": "x\\u0000"}]}', 'NUL'],
    ['["\\ud800"]', 'surrogate'],
    ['{"x\\u0000": 1}', 'NUL'],
    ['{"to": "a@acme.test", "to": "b@acme.test"}', 'the name "to" twice'],
    ['{"lines": [{"a": 1}, {"b": 1, "\\u0062": 2}]}', 'the name "b" twice'],
    ['{"a":'.repeat(PAYLOAD_MAX_DEPTH + 1) + '1' + '}'.repeat(PAYLOAD_MAX_DEPTH + 1), 'levels deep'],
  ])('are refused if they are %j', (input, why) => {
    const { value, fault } = parseArguments(input)
    expect(fault).toContain(why)
    expect(JSON.stringify(value)).not.toMatch(/(?<!\\)\\u(?:0000|d8)/)
  })
})
