import { describe, expect, test } from '@jest/globals'
import { fillPayload } from './fill-payload.ts'

const order = { order_id: 'A-1', customer: 'Eve', quantity: 1, total: 9.5, date: '2026-01-31', note: 'x' }

function unconverted(example: Record<string, unknown>, context: string): readonly string[] {
  return fillPayload(example, context).report.unconverted.listed
}

describe('a context is refused', () => {
  test.each<[string, object, string, string]>([
    [
      'two values for a name',
      order,
      'Order ID: A\nTotal: 5\nTotal: 6',
      'total (the context has different values: "5" and "6")',
    ],
    [
      'two orders',
      order,
      '[{"order_id": "A", "total": 1}, {"order_id": "B", "total": 1}]',
      'order_id (the context has',
    ],
    [
      'two equal orders with a part',
      { order_id: 'A', customer: { name: 'x' } },
      '[{"order_id": "A", "customer": {"name": "Ada"}}, {"order_id": "A", "customer": {"name": "Ada"}}]',
      'the context (the context has 2 objects with "customer"',
    ],
    ['two names of one field', order, 'Client: Ada\nKunde: Eve', 'customer (the context has different values'],
    ['a correction beside the values', order, 'Total: 5\nActually, it is 6.', 'the context (the text corrects itself'],
    [
      'a mail that takes back an earlier one inside a value',
      { ...order, reason: 'x' },
      'Order ID: A\nReason: not cancelling after all, please ignore my earlier mail',
      'the context (the text takes something back: "not cancelling after all")',
    ],
    [
      'a total and a smaller one',
      order,
      'Total: 20\nTotal after discount: 18',
      'total ("Total after discount" may be meant',
    ],
    [
      'a city with its postal code',
      { id: 'x', city: 'y' },
      'ID: 1\nCity: 01067 Dresden',
      'city ("01067 Dresden" has more',
    ],
    ['a correction in Japanese', order, '合計：5\n訂正：合計は6です。', 'the context (the text corrects itself'],
    [
      'a name for several fields',
      { ship_to: { city: 'x' }, bill_to: { city: 'x' }, id: '1' },
      'ID: 1\nCity: Bonn',
      'the context ("City" can be ship_to.city or bill_to.city)',
    ],
    [
      'a similar name',
      { first_name: 'x', email: 'a@b.test' },
      'Name: Ada Byron\nE-Mail: a@c.test',
      'first_name ("Name" may be meant, or not)',
    ],
    [
      'an address in one line',
      { id: 'x', street: 'y', city: 'z' },
      'ID: 1\nAddress: 4 Quay Road, Truro',
      'street ("Address" may be meant',
    ],
    ['several names on one line', order, 'Order ID: A, red, Total: 5', 'the context (a line has more than one name'],
    [
      'a row with too many cells',
      { lines: [{ sku: 'x', price: 1 }], id: 'x' },
      'ID: 1\nsku,price\nA,1,50',
      'the context (a row of a table has 3 cells',
    ],
    [
      'a blank number in a table',
      { lines: [{ sku: 'x', price: 1 }] },
      '| sku | price |\n|---|---|\n| A | |',
      'lines.0.price (it is blank)',
    ],
    [
      'items in words',
      { id: 'x', items: [{ sku: 'x' }] },
      'ID: 1\nItems: two chairs',
      'items ("two chairs" is not an object)',
    ],
    [
      'a unit without a field',
      { product: 'x', quantity: 1 },
      'Product: Flour\nQuantity: 25\nUnit: kg',
      'quantity ("Unit" may be meant',
    ],
    ['a postal code as a number', { zip: 1, city: 'x' }, 'ZIP: 01067\nCity: Dresden', 'zip ("01067" is not a number)'],
    [
      'a sign of several currencies',
      { total: 1, currency: 'EUR' },
      'Total: 5\nCurrency: $',
      'currency ("$" is not one currency)',
    ],
    [
      'another currency',
      { total: 1, currency: 'EUR' },
      'Total: 5 EUR\nCurrency: CHF',
      'currency ("CHF" is not the currency',
    ],
    [
      'one item or several',
      { id: 'x', tags: ['y'] },
      'ID: 1\nTags: red and blue',
      'tags ("red and blue" is one item, or several)',
    ],
    ['an item with a price in words', { items: [{ name: 'x', quantity: 1 }] }, 'Items: 2 x chairs, 40 EUR', 'items ('],
    [
      'a value and its older one',
      { id: 'x', color: 'y' },
      'ID: 1\nColor: red -> blue',
      'color ("red -> blue" has more',
    ],
    [
      'an older mail that names more',
      order,
      'Order ID: 7\n\n-----Original Message-----\nCustomer: Ada\nTotal: 5',
      'the context (an older mail',
    ],
    [
      'a cancellation in the subject',
      order,
      'Subject: Cancellation of order 5\nOrder ID: 5',
      'the context (the text corrects',
    ],
    ...[
      'The quantity went up to 8.',
      'By the way, 6 chairs are enough.',
      'Could you deliver on 6 March?',
      'Please double the quantity.',
      'Add two lamps.',
      'Am Telefon hatten wir 45 EUR vereinbart.',
      'Quantities are in boxes of 10.',
      'What would this cost us? We are still comparing and are not ordering now.',
      'Please leave out the lamps, I found enough of them.',
      'Bitte mit dem anderen Auftrag zusammenlegen.',
      'Wir würden gern noch eine Nacht dranhängen.',
      'I would be happy to get it the day after.',
      'Can this be picked up in the shop?',
      'Our budget owner has to sign this off, so treat it as a draft for now.',
      'That mailbox is switched off on Friday, so write to ada@new.example from the start.',
      'Background: There will be five of us in the end.',
      'Talk with Eve: the beginning is moved by a day.',
      '数量は箱単位です。',
    ].map((sentence): [string, object, string, string] => [
      `"${sentence}"`,
      order,
      `${sentence}\n\nOrder ID: 7\nTotal: 5`,
      'the context (',
    ]),
    ['cents or not', { total_cents: 100 }, 'Total cents: 12.50', 'total_cents ("12.50" may be in cents or not)'],
  ])('because of %s', (_what, example, context, reason) => {
    expect(unconverted({ ...example }, context)).toEqual(expect.arrayContaining([expect.stringContaining(reason)]))
  })

  test.each<[string, string, object]>([
    ['the same value twice', 'Order ID: A\nOrder no.: A', { order_id: 'A' }],
    ['the same number in two notations', 'Total: 5\nTotal: 5.00', { total: 5 }],
    [
      'a block of code with a name twice that is not JSON',
      '```\n{"order_id": "A"}\n```\n\n```\nset({"x": 1, "x": 2});\n```',
      { order_id: 'A' },
    ],
    ['the footer of an automatic mail', 'Order ID: A\nPlease do not reply to this message.', { order_id: 'A' }],
    ['a disclaimer', 'Order ID: A\n\nWenn Sie nicht der richtige Empfänger sind, löschen Sie sie.', { order_id: 'A' }],
    ['a sentence before the names', 'ich möchte bestellen:\n\n* Order ID: A\n* Customer: Ada', { customer: 'Ada' }],
    ['the occasion in the subject of a mail', 'Subject: Correction of order 4\nOrder ID: A', { order_id: 'A' }],
    ...[
      'Please find our order of 3 March below.',
      'We will ship your order within 2 working days.',
      'All prices include VAT.',
      'Bitte vor 7 Uhr anliefern.',
      'Could you please enter this order in the system?',
      'We received it on our website.',
      'You can see all orders in your dashboard.',
      'We look forward to working with you.',
      'It was lovely speaking with you this morning.',
      'This e-mail may contain personal data. If you received it in error, please delete it.',
      'Questions about your order? Write to help@shop.example.',
      'I would like to make an appointment with Dr. Silva.',
      'Ich möchte gerne Ihre neue Leuchte bestellen.',
      'Please quote the number of the order with your payment.',
      'The customer placed this order on 2 March 2026.',
      'ご不明な点がございましたらお問い合わせください。',
    ].map((sentence): [string, string, object] => [`"${sentence}"`, `Order ID: A\n\n${sentence}`, { order_id: 'A' }]),
    ['pairs on one line', 'Order ID: A, Total: 5', { order_id: 'A', total: 5 }],
    ['the signature of an email', 'Order ID: A\n\nBest regards\nEve\nCustomer: Shop', { order_id: 'A', customer: '' }],
    ['thousands as in the other numbers', 'Total: 1.000,50\nQuantity: 1.234', { total: 1000.5, quantity: 1234 }],
  ])('but not because of %s', (_what, context, expected) => {
    expect(unconverted(order, context)).toEqual([])
    expect(fillPayload(order, context).payload).toMatchObject(expected)
  })
})

describe('reading takes linear time', () => {
  test.each([
    ['open brackets', '[\n'.repeat(5_000)],
    ['code fences', '```x\n'.repeat(2_000)],
    ['headers of tables', 'total,quantity\n'.repeat(700)],
    ['rules of tables', '|-|-|\n'.repeat(1_600)],
    ['names', 'a:\n'.repeat(3_300)],
    ['separators', `note: ${', total'.repeat(1_400)}`],
    ['digits', `total: ${'1,'.repeat(5_000)}`],
    ['spaces', `total: 1${' '.repeat(9_900)}x`],
    ['indentation', Array.from({ length: 140 }, (_, index) => `${' '.repeat(index)}a:`).join('\n')],
    ['emphasis', '*'.repeat(10_000)],
  ])('of %s', (_what, context) => {
    const example = { ...order, lines: [{ total: 1, quantity: 1 }] }
    fillPayload(example, 'x')
    const before = process.threadCpuUsage()
    fillPayload(example, context)
    expect(process.threadCpuUsage(before).user).toBeLessThan(1_000_000)
  })
})
