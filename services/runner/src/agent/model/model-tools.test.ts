import { describe, expect, test } from '@jest/globals'
import { asSchema } from 'ai'
import { webhookSource } from '../../../test/support/in-memory-run.ts'
import { createToolbox } from './model-tools.ts'

function toolNames(names: string[]): string[] {
  const sources = names.map((name) => webhookSource(name, {}))
  return Object.keys(createToolbox(sources, []).definitions).filter((name) => name !== 'end_run')
}

async function schemaOf(example: Record<string, unknown>): Promise<unknown> {
  const { definitions } = createToolbox([webhookSource('Orders', example)], [])
  return asSchema(definitions['send_to_orders']?.inputSchema).jsonSchema
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

  test('of a source whose stored example exceeds a limit say that nothing can be sent, without the example', () => {
    const { definitions } = createToolbox([webhookSource('Orders', { ids: Array<number>(101).fill(7) })], [])
    expect(definitions['send_to_orders']?.description).toMatch(
      /^Cannot send to the webhook source "Orders": its example request body .* ids has 101; save the source again/,
    )
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
    expect(await schemaOf(example)).toEqual({
      type: 'object',
      properties: {
        Order_ID_2: { type: 'string', description: 'Sent as "Order ID".' },
        gro_e: { type: 'number', description: 'Sent as "größe". A whole number in the example.' },
        Order_ID: { type: 'number', description: 'A whole number in the example.' },
        lines: {
          type: 'array',
          items: {
            anyOf: [
              {
                type: 'object',
                properties: { Art_Nr: { type: 'string', description: 'Sent as "Art. Nr.".' } },
                required: ['Art_Nr'],
                additionalProperties: false,
              },
              { type: 'string' },
            ],
          },
        },
        field: { type: 'boolean', description: 'Sent as "订单".' },
        field_2: { type: 'number', description: 'Sent as "". A whole number in the example.' },
      },
      required: ['Order_ID_2', 'gro_e', 'Order_ID', 'lines', 'field', 'field_2'],
      additionalProperties: false,
    })
  })

  test('are restored in the payload', () => {
    const source = webhookSource('Orders', example)
    const args = { Order_ID_2: 'B', gro_e: 2, Order_ID: 3, lines: [{ Art_Nr: 'y' }, 'z'], field: true, field_2: 4 }
    expect(createToolbox([source], []).toPayload(source.id, args)).toEqual({
      'Order ID': 'B',
      größe: 2,
      Order_ID: 3,
      lines: [{ 'Art. Nr.': 'y' }, 'z'],
      订单: true,
      '': 4,
    })
  })

  test('are left as they are when the source was deleted meanwhile', () => {
    expect(createToolbox([], []).toPayload('gone', { a: 1 })).toEqual({ a: 1 })
  })
})
