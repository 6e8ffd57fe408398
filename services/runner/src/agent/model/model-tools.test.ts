import { describe, expect, test } from '@jest/globals'
import { checkPayload } from '@workflow-service/contract'
import { asSchema } from 'ai'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import type { SourceForAgent } from '@workflow-service/database'
import { createToolbox } from './model-tools.ts'

/** The payload that the arguments of the source's tool give. */
function payloadOf(source: SourceForAgent, args: Record<string, unknown>): unknown {
  return createToolbox([source], []).target(`send_to_${source.name.toLowerCase()}`)?.toPayload(args)
}

function toolNames(names: string[]): string[] {
  const sources = names.map((name) => webhookSource(name, {}))
  return Object.keys(createToolbox(sources, []).definitions).filter((name) => name !== 'end_run')
}

async function schemaOf(example: Record<string, unknown>): Promise<unknown> {
  const { definitions } = createToolbox([webhookSource('Orders', example)], [])
  return asSchema(definitions['send_to_orders']?.inputSchema).jsonSchema
}

/** The schema of an object with these fields and no others. */
function strict(properties: object) {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

describe('the tools of a run', () => {
  test('have distinct names that all APIs accept', () => {
    const names = [
      'Order intake',
      'order-intake',
      'Ärger & Über',
      '订单',
      '注文',
      'x'.repeat(100),
      `${'x'.repeat(100)}y`,
    ]
    const tools = toolNames(names)
    expect(tools).toEqual([
      'send_to_order_intake',
      'send_to_order_intake_2',
      'send_to_arger_uber',
      'send_to_source',
      'send_to_source_2',
      `send_to_${'x'.repeat(56)}`,
      `send_to_${'x'.repeat(54)}_2`,
    ])
    for (const tool of tools) expect(tool).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
  })

  test('have the description of the source, and its example with a warning not to send its values', () => {
    const { definitions } = createToolbox([webhookSource('Orders', { id: 'A-1' }, 'New orders go here.')], [])
    expect(definitions['send_to_orders']?.description).toBe(
      'Sends a payload to the webhook source "Orders": one request, at once.\nNew orders go here.\n' +
        'The example shows the form of every payload; its values are made up, never send them: {"id":"A-1"}',
    )
  })

  test('include those for files only if the workflow has files, and the search only if sources are left out', () => {
    const file = { id: 'f', name: 'a.md', path: [] }
    expect(Object.keys(createToolbox([], [], { hasSearch: false }).definitions)).toEqual(['end_run'])
    expect(Object.keys(createToolbox([], [file]).definitions)).toEqual(['end_run', 'list_files', 'read_file'])
    expect(Object.keys(createToolbox([], [], { hasSearch: true }).definitions)).toEqual(['end_run', 'search_sources'])
  })
})

describe('field names that some APIs reject', () => {
  const example = { 'Order ID': 'A-1', größe: 1, Order_ID: 2, lines: [{ 'Art. Nr.': 'x' }, 'x'], 订单: true, '': 1 }

  test('are replaced by aliases of letters and digits, described by the real name', async () => {
    const line = strict({ Art_Nr: { type: 'string', description: 'Sent as "Art. Nr.".' } })
    const properties = {
      Order_ID_2: { type: 'string', description: 'Sent as "Order ID".' },
      gro_e: { type: 'number', description: 'Sent as "größe". A whole number in the example.' },
      Order_ID: { type: 'number', description: 'A whole number in the example.' },
      lines: { type: 'array', items: { anyOf: [line, { type: 'string' }] } },
      field: { type: 'boolean', description: 'Sent as "订单".' },
      field_2: { type: 'number', description: 'Sent as "". A whole number in the example.' },
    }
    expect(await schemaOf(example)).toEqual(strict(properties))
  })

  test('are restored in the payload', () => {
    const source = webhookSource('Orders', example)
    const args = { Order_ID_2: 'B', gro_e: 2, Order_ID: 3, lines: [{ Art_Nr: 'y' }, 'z'], field: true, field_2: 4 }
    expect(payloadOf(source, args)).toEqual({
      'Order ID': 'B',
      größe: 2,
      Order_ID: 3,
      lines: [{ 'Art. Nr.': 'y' }, 'z'],
      订单: true,
      '': 4,
    })
  })

  test('stay beside the real name if a call has both: one of the values would be lost', () => {
    const source = webhookSource('Orders', { 'Order ID': 'A-1' })
    const payload = payloadOf(source, { Order_ID: 'B', 'Order ID': 'C' })
    expect(payload).toEqual({ Order_ID: 'B', 'Order ID': 'C' })
    expect(checkPayload(source.exampleRequestBody, payload, '')).toMatchObject({ outcome: 'invalid' })
  })
})

describe('fields that some APIs reject', () => {
  const example = {
    extra: {},
    note: null,
    tags: [],
    lines: [{ meta: {} }],
    either: [{ a: 1 }, null, 'x'],
    '1st-id': 'A',
  }
  const anyValue = { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'null' }] }
  const openFields = {
    type: 'array',
    description: 'Fields of any name, each once.',
    items: strict({ name: { type: 'string' }, value: anyValue }),
  }

  test('get other schemas: lists of fields instead of objects of any fields, and always a type', async () => {
    expect(await schemaOf(example)).toMatchObject({
      properties: {
        extra: openFields,
        note: anyValue,
        tags: { type: 'array', items: anyValue },
        lines: { type: 'array', items: { type: 'object', properties: { meta: openFields } } },
        either: { type: 'array', items: { anyOf: [{ type: 'object' }, { type: 'null' }, { type: 'string' }] } },
        field_1st_id: { type: 'string', description: 'Sent as "1st-id".' },
      },
    })
    expect(await schemaOf({})).toEqual(strict({ fields: openFields }))
  })

  test('become objects again in the payload, however the model writes them', () => {
    const source = webhookSource('Orders', example)
    const toPayload = (args: Record<string, unknown>) => payloadOf(source, args)
    const fields = [{ name: 'a b', value: 1 }]
    const rest = { note: null, tags: ['x'], either: [{ a: 2 }, null], field_1st_id: 'B' }
    const payload = { note: null, tags: ['x'], either: [{ a: 2 }, null], '1st-id': 'B' }
    expect(toPayload({ ...rest, extra: fields, lines: [{ meta: [] }] })).toEqual({
      ...payload,
      extra: { 'a b': 1 },
      lines: [{ meta: {} }],
    })
    expect(toPayload({ ...rest, extra: { 'a b': 1 }, lines: [{ meta: {} }] })).toMatchObject({
      extra: { 'a b': 1 },
    })
    expect(toPayload({ ...rest, extra: ['a'] })).toMatchObject({ extra: ['a'] })
    const open = webhookSource('Open', {})
    expect(payloadOf(open, { fields })).toEqual({ 'a b': 1 })
    expect(payloadOf(open, { 'a b': 1 })).toEqual({ 'a b': 1 })
  })
})

describe('a long description', () => {
  const long = { id: 'A-1', dates: ['2026-01-31'], items: [{ text: 'y'.repeat(900) }] }

  test('of a source is a part of the instructions, and a long example one of the fields', async () => {
    const source = webhookSource('Orders', long, `Only on Mondays. ${'z'.repeat(9_000)}`)
    const { definitions, notes } = createToolbox([source], [])
    const { description, inputSchema } = definitions['send_to_orders'] ?? {}
    expect(description?.length).toBeLessThanOrEqual(1_000)
    expect(description).toContain('The instructions describe it.')
    expect(notes).toContain('- send_to_orders: Only on Mondays. zzz')
    expect(await asSchema(inputSchema).jsonSchema).toMatchObject({
      properties: {
        id: { type: 'string', description: 'Such as "A-1".' },
        dates: { items: { description: 'Such as "2026-01-31".' } },
        items: { items: { properties: { text: { description: expect.stringMatching(/^Such as "y{50,}…?".$/u) } } } },
      },
    })
  })

  test('is at most 1,000 characters long, of every source', () => {
    for (const length of [0, 100, 399, 401, 5_000]) {
      for (const size of [0, 200, 800, 5_000]) {
        const source = webhookSource('N'.repeat(200), { text: 'x'.repeat(size) }, 'd'.repeat(length))
        const [tool] = Object.values(createToolbox([source], []).definitions)
        expect(tool?.description?.length).toBeLessThanOrEqual(1_000)
      }
    }
  })
})
