import { expect, test } from '@jest/globals'
import { createInMemoryRun, webhookSource } from '../test/support/in-memory-run.ts'
import { createBuiltinAgent } from '../src/agent/builtin/builtin-agent.ts'

/** Contexts and descriptions that people tried, and to which the agent of word lists sent a payload that was wrong. */
const example = {
  order_id: 'A-1',
  customer: 'Eve',
  quantity: 1,
  total: 9.5,
  paid: true,
  express: false,
}
const VALUES = 'order_id: B-7\ncustomer: Berg\nquantity: 5\ntotal: 12.50\npaid: yes\nexpress: no'

async function codeOf(context: string, description = 'Send it to Order intake.'): Promise<string> {
  const run = createInMemoryRun({
    description,
    context,
    sources: [webhookSource('Order intake', example), webhookSource('Billing', example)],
  })
  const error = (await run.execute(createBuiltinAgent()).catch((thrown: unknown) => thrown)) as
    | { code: string }
    | undefined
  expect(run.sent).toHaveLength(error ? 0 : 1)
  return error?.code ?? 'sent'
}

test('the values themselves are sent', async () => {
  expect(await codeOf(VALUES)).toBe('sent')
})

test.each([
  [
    'quantity',
    ['Quantitiy: 5', 'Units: 5', 'Pieces: 5', 'Qty: 5', 'Menge: 5', 'Quantité: 5', '数量: 5', 'Quantity ordered: 5'],
  ],
  ['total', ['Amount due: 12.50', 'Order value: 12.50', 'Totale: 12.50', 'Gesamt: 12.50', 'Grand total: 12.50']],
  ['paid', ['Payment status: paid', 'Payment received: yes', 'Bezahlt: yes', 'Pagado: yes']],
  ['express', ['Shipping: Express', 'Express shipping: yes', 'Versand: Express']],
  ['customer', ['Costumer: Berg', 'Client: Berg', 'Cliente: Berg', 'Kunde: Berg', '顧客: Berg']],
])('no %s is emptied because its value has another name', async (field, lines) => {
  const others = VALUES.split('\n').filter((line) => !line.startsWith(`${field}:`))
  for (const line of lines)
    expect([line, await codeOf([...others, line].join('\n'))]).toEqual([line, 'payload_incomplete'])
})

test.each([
  "Merci d'annuler cette commande.",
  '数量改为6。',
  'No, 6',
  'Erratum: 6',
  'This is a quote, no order.',
  'TEST',
  'Correction: quantity 6',
  'Nachtrag: Bitte die Menge auf 6 erhöhen.',
  'quantity: 6',
])('nothing is sent beside %j', async (line) => {
  expect(await codeOf(`${VALUES}\n\n${line}`)).not.toBe('sent')
  expect(await codeOf(`${line}\n${VALUES}`)).not.toBe('sent')
})

test.each([
  ['an envelope', { id: 'evt_1', type: 'x', data: { object: { ...example, id: 'cs_1' } } }],
  ['a value in an object', { ...example, total: { value: 120.5 } }],
  ['other names', { ...example, customer: undefined, title: 'Berg' }],
  ['null', { ...example, quantity: null }],
])('nothing is sent for JSON with %s', async (_what, json) => {
  expect(await codeOf(JSON.stringify(json))).toBe('payload_incomplete')
})
