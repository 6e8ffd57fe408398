import { randomUUID } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { draftRules } from '@workflow-service/contract'
import { expectFast } from '../../../../../packages/rules/test/expect-fast.ts'
import { createInMemoryRun, type InMemoryRunOptions, webhookSource } from '../../../test/support/in-memory-run.ts'
import { RunParkedError } from '../../run-errors.ts'
import { builtinAgent as agent } from '../builtin/builtin-agent.ts'

const bigDeals = webhookSource('Big deals', { channel: '#sales', cents: 1, customer: { name: 'Eve', email: '' } })
const desk = webhookSource('Support desk', { subject: 'Help', tags: ['a'] })

function ruledRun(rules: string, options: InMemoryRunOptions = {}) {
  return createInMemoryRun({
    description: 'Never send anything to Support desk.',
    sources: [bigDeals, desk],
    files: [
      { id: randomUUID(), name: 'about.md', path: ['old'], content: 'not read' },
      { id: randomUUID(), name: 'rules.yaml', path: [], content: rules },
    ],
    context: 'Total: 250.50\nCustomer name: Ada\nCustomer email: ada@home.test\nSubject: Broken\nTags: ["b"]',
    ...options,
  })
}

const emptyObjects = (length: number) => Array.from({ length }, () => ({}))

describe('the built-in agent with rules', () => {
  test('merges given fields of an object with those filled by name, and sends to a source as often as the rules say', async () => {
    const run = ruledRun(`deliveries:
  - { to: Big deals, payload: { customer: { email: '"ada@shop.test"' }, channel: workflow.name, cents: 3 } }
  - { to: Big deals, payload: { customer: '{"name": upper("Bob")}', channel: text(now), cents: 4 } }
  - { to: Support desk, payload: { subject: lower(fields.SUBJECT), tags: ['"x"', 'input_message'] } }
`)
    await run.execute(agent)
    expect(run.sent.map(({ payload }) => payload)).toEqual([
      { channel: 'Orders', cents: 3, customer: { name: 'Ada', email: 'ada@shop.test' } },
      { channel: '2026-01-31T08:59:58.123Z', cents: 4, customer: { name: 'BOB', email: 'ada@home.test' } },
      { subject: 'broken', tags: ['x', ''] },
    ])
    expect(run.dataOf('note')[0]?.text).toBe(
      'Big deals: given by rules.yaml: customer, channel, cents; filled by name: customer',
    )
  })

  test.each(['deleted', 'replaced by another file'])(
    'sends nothing by the description if the rules were %s since the run was claimed, and has it claimed anew',
    async (how) => {
      const content = 'deliveries:\n  - to: Support desk\n    when: false'
      const rulesFile = () => ({ id: randomUUID(), name: 'rules.yaml', path: [], content })
      const options: InMemoryRunOptions = {
        description: 'Send it to Support desk.',
        context: 'Subject: Broken',
        sources: [webhookSource('Support desk', { subject: 'Help' })],
        files: [rulesFile()],
      }
      const run = createInMemoryRun(options)
      options.files = how === 'deleted' ? [] : [rulesFile()]
      await expect(run.execute(agent)).rejects.toBeInstanceOf(RunParkedError)
      expect({ sent: run.sent, steps: run.steps }).toEqual({ sent: [], steps: [] })
    },
  )

  test.each([
    [
      'of the second condition',
      'deliveries:\n  - to: Big deals\n  - to: Support desk\n    when: fields.vip',
      /^rules\.yaml, line 4, delivery 2, when: there is no field "vip"/,
    ],
    [
      'of the second payload',
      'deliveries:\n  - to: Big deals\n  - to: Support desk\n    payload: { subject: number(fields.subject) }',
      /^rules\.yaml, line 4, delivery 2, payload\.subject: "Broken" is no number/,
    ],
    [
      'of a type',
      'deliveries:\n  - to: Big deals\n    payload:\n      cents: fields.total',
      /^rules\.yaml, line 4, delivery 1, payload\.cents: must be a number/,
    ],
    [
      'of a field',
      'deliveries:\n  - to: Big deals\n    payload: { cnets: 5 }',
      /^rules\.yaml, line 3, delivery 1, payload\.cnets: is not in the example/,
    ],
  ])('sends nothing of the run after an error %s', async (_name, rules, message) => {
    const run = ruledRun(rules, { context: `Total: 250.50\nSubject: Broken\nNotes: ${'o'.repeat(9_000)}` })
    expect(await run.errorOf(agent)).toMatchObject({ code: 'rule_failed', message: expect.stringMatching(message) })
    expect(run.sent).toEqual([])
    // The reason is in the journal, and a resumed run does not evaluate the rules again.
    expect(run.steps.map(({ kind }) => kind)).toEqual(['message', 'note'])
    expect(await run.errorOf(agent)).toMatchObject({ code: 'rule_failed' })
    expect(run.steps).toHaveLength(2)
  })

  test.each([
    ['a value that is not given does not fit', '{ to: Support desk, payload: { tags: ["1"] } }', 'cents: soon'],
    ['one that is not given has no value', '{ to: Support desk, payload: { tags: ["1"] } }', 'sents: 5'],
    ['nothing is given, and the context names nothing', '{ to: Support desk }', ''],
  ])('sends nothing of the run if %s', async (_name, rule, context) => {
    const bill = webhookSource('Support desk', { cents: 1, tags: [1] })
    const run = ruledRun(
      `deliveries: [{ to: Big deals, payload: { channel: context, cents: 1, customer: { name: context, email: context } } }, ${rule}]`,
      {
        sources: [bigDeals, bill],
        context,
      },
    )
    expect(await run.errorOf(agent)).toMatchObject({
      code: 'payload_incomplete',
      message: expect.stringContaining('Nothing was sent to Support desk. '),
    })
    expect(run.sent).toEqual([])
  })

  test.each([
    ['2026-02-28', '2026-02-28'],
    [' 2026-02-28T23:59:59.5+09:00 ', '2026-02-28'],
    ['2026-02-30', '"2026-02-30" is no date such as 2026-01-31'],
    ['02/03/2026', '"02/03/2026" is no date such as 2026-01-31'],
    ['20260228', '"20260228" is no date such as 2026-01-31'],
  ])('reads the date %j only if it has one meaning', async (date, result) => {
    const rules = 'deliveries: [{ to: Support desk, payload: { subject: date(fields.date), tags: [] } }]'
    const run = ruledRun(rules, { context: JSON.stringify({ date }) })
    const error = await run.errorOf(agent)
    expect(error?.message ?? run.sent[0]?.payload['subject']).toContain(result)
  })

  test.each([
    [1, 26, 'undefined'],
    [1, 27, 'the payload would be larger than 256 KiB'],
    [17, 25, 'the payloads of one run would be larger than 4 MiB'],
  ])('sends everything or nothing of %i payloads with %i times a context of 10,000', async (count, times, refusal) => {
    const tags = Array<string>(times).fill('context').join(', ')
    const delivery = `  - { to: Support desk, payload: { subject: '"x"', tags: [${tags}] } }\n`
    const run = ruledRun(`deliveries:\n${delivery.repeat(count)}`, { context: 'x'.repeat(10_000) })
    expect(String(await run.errorOf(agent))).toContain(refusal)
    expect(run.sent).toHaveLength(refusal === 'undefined' ? count : 0)
  })

  test.each([
    ['[{"a": 1}, {"a": 2},]', 'needs_a_model', /begins like JSON/],
    ['[{"a": 1}, {"a": 2, "a": 3}]', 'payload_incomplete', /the name "a" twice/],
  ])('fails a run that asks for the items of %s', async (context, code, message) => {
    const payload = 'payload: { subject: string(size(items)), tags: [] }'
    for (const rule of ['for_each: items', `when: 'items.exists(i, true)', ${payload}`, payload]) {
      const run = ruledRun(`deliveries: [{ to: Support desk, ${rule} }]`, { context })
      expect(await run.errorOf(agent)).toMatchObject({ code, message: expect.stringMatching(message) })
      expect(run.sent).toEqual([])
    }
  })

  test.each(['customer.nmae: Ada', '{"customer": {"nmae": "Ada"}}'])(
    'sends the value with the closest name, by the rules that are drafted for %j',
    async (context) => {
      const description = 'Send it to Shop.'
      const example = { customer: { name: 'Eve' } }
      const options = { description, sources: [webhookSource('Shop', example)], context }
      const refused = createInMemoryRun(options)
      const error = await refused.errorOf(agent)
      expect(error?.code).toBe('payload_incomplete')
      const details = refused.dataOf('note')[0]?.details
      const rules = draftRules({ code: 'payload_incomplete', comment: 'x', details }, [
        { name: 'Shop', example_request_body: example },
      ])
      const run = ruledRun(rules, options)
      await run.execute(agent)
      expect(run.sent.map(({ payload }) => payload)).toEqual([{ customer: { name: 'Ada' } }])
    },
  )

  test.each([
    [500, 'has(fields.a) ? "yes" : "no"', undefined],
    [501, 'has(fields.a) ? "yes" : "no"', 'needs_a_model'],
    [1_600, 'text(fields.a)', 'needs_a_model'],
    [1_600, 'substring(context, 0, 4)', undefined],
  ])('plans for a context of %s levels by %s, or refuses it for good', async (levels, subject, code) => {
    const rules = `deliveries: [{ to: Support desk, payload: { subject: '${subject}', tags: [] } }]`
    const run = ruledRun(rules, { context: `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}` })
    const error = await run.errorOf(agent)
    const message = code && 'Nothing was sent: the context nests objects and lists more than 500 levels deep'
    expect([error?.code, error?.message]).toEqual([code, message])
    expect(run.sent).toHaveLength(code === undefined ? 1 : 0)
  })

  test('has no items of a text that is no JSON', async () => {
    const run = ruledRun('deliveries: [{ to: Support desk, for_each: items }]', { context: 'Hello' })
    await run.execute(agent)
    expect(run.sent).toEqual([])
  })

  test('finds the fields of a context in JSON in any spelling, also in lists', async () => {
    const lines = '[{"Unit-Price": 2.50}, {"unitPrice": 1234567890123456.78}, {"unitPrice": 199.90000000000001}]'
    const context = `{"Order ID": 12345678901234567890, "order": {"Lines": ${lines}}}`
    const rules = `deliveries:
  - to: Support desk
    payload:
      subject: text(fields.order_id)
      tags: fields.order.lines.map(line, text(line.unit_price))`
    const run = ruledRun(rules, { context })
    await run.execute(agent)
    expect(run.sent.map(({ payload }) => payload)).toEqual([
      { subject: '12345678901234567890', tags: ['2.5', '1234567890123456.78', '199.9'] },
    ])
  })

  test.each([
    ['the value', { BB: emptyObjects(1_500) }],
    ['equal values', { b_b: emptyObjects(700), bB: emptyObjects(700) }],
  ])('refuses within 50 ms a loop that asks too often for %s of a large field', async (_what, fields) => {
    const context = JSON.stringify({ a: emptyObjects(1_000), ...fields })
    const rules =
      "deliveries: [{ to: Support desk, when: 'fields.a.all(x, fields.a.all(y, has(fields.BB)))', payload: { tags: [] } }]"
    await expectFast(async () => {
      const message = expect.stringContaining('the expressions take too much work')
      expect(await ruledRun(rules, { context }).errorOf(agent)).toMatchObject({ code: 'rule_failed', message })
    })
  })

  describe('for each item of a list', () => {
    const stock = webhookSource('Stock', { sku: 'A', order: 'A', quantity: 1 })
    const each = `deliveries:
  - to: Stock
    for_each: fields.lines
    when: number(item.quantity) > 0.0
    payload: { order: fields.order_id }
`

    test('sends one payload, with the other fields from the item by name', async () => {
      const lines = [
        { SKU: 'B', quantity: '2' },
        { sku: 'C', Quantity: 0 },
        { sku: 'D', quantity: 5 },
      ]
      const run = ruledRun(each, { sources: [stock], context: JSON.stringify({ order_id: 'A-7', sku: 'X', lines }) })
      await run.execute(agent)
      expect(run.sent.map(({ payload }) => payload)).toEqual([
        { sku: 'B', order: 'A-7', quantity: 2 },
        { sku: 'D', order: 'A-7', quantity: 5 },
      ])
    })

    test.each([
      ['an item without a value', [{ quantity: 1 }], 'payload_incomplete', /No value for: sku/],
      [
        'more than 50 items',
        Array.from({ length: 51 }, () => ({ sku: 'A', quantity: 1 })),
        'rule_failed',
        /for_each: a run sends at most 50/,
      ],
      ['no list', { sku: 'A' }, 'rule_failed', /line 3, delivery 1, for_each: must be a list/],
    ])('sends nothing for %s', async (_what, lines, code, message) => {
      const run = ruledRun(each, { sources: [stock], context: JSON.stringify({ order_id: 'A', lines }) })
      expect(await run.errorOf(agent)).toMatchObject({ code, message: expect.stringMatching(message) })
      expect(run.sent).toEqual([])
    })

    test('of a context that is a list', async () => {
      const rules =
        'deliveries: [{ to: Stock, for_each: items, payload: { order: item.sku } }, { to: Total, payload: { count: size(items) } }]'
      const sources = [stock, webhookSource('Total', { count: 1, note: null })]
      const run = ruledRun(rules, { sources, context: '[{"sku": "B", "quantity": 2}]' })
      await run.execute(agent)
      expect(run.sent.map(({ payload }) => payload)).toEqual([
        { sku: 'B', order: 'B', quantity: 2 },
        { count: 1, note: null },
      ])
    })
  })

  test.each([
    [
      'Total: 5\nTOTAL: 6',
      'text(fields.total)',
      'rule_failed',
      /payload\.subject: the context has different values for "total"/,
    ],
    ['{"a_b": 1, "aB": 2}', 'text(fields.AB)', 'rule_failed', /different values for "AB"/],
    ['Total: 5\nTotal: 6', 'has(fields.total) ? "x" : "y"', 'rule_failed', /different values/],
    ['note:', 'text(fields.note)', 'rule_failed', /there is no field "note"/],
    ['note: 1', 'text(fields[0])', 'rule_failed', /there is no item 0; they are counted from 0/],
    ['{"note": null}', 'text(fields.note)', 'rule_failed', /null is no text/],
    ['{"note": []}', 'text(fields.note)', 'rule_failed', /a list is no text/],
    [
      'Please call me back',
      'has(fields.note) ? "x" : "y"',
      'needs_a_model',
      /line 1 of the context is no "name: value"/,
    ],
    ['Please call me back', 'string(size(fields))', 'needs_a_model', /line 1/],
  ])('gives no value that the context does not have: %j, %s', async (context, subject, code, message) => {
    const rules = `deliveries: [{ to: Support desk, payload: { subject: '${subject}', tags: [] } }]`
    const run = ruledRun(rules, { context })
    expect(await run.errorOf(agent)).toMatchObject({ code, message: expect.stringMatching(message) })
    expect(run.sent).toEqual([])
  })

  test.each([
    ['{"a_b": 1, "aB": 2}', 'text(fields.aB)', '2'],
    ['{"id": 9007199254740993.0}', 'text(fields.id)', '9007199254740993.0'],
    ['{"id": 9.007199254740993e15}', 'text(fields.id)', '9.007199254740993e15'],
    ['{"moles": 6.02214076e23}', 'text(fields.moles)', '6.02214076e+23'],
    ['{"moles": 6.0221407599999999e+23}', 'text(fields.moles)', '6.02214076e+23'],
    ['{"huge": 1.5e400}', 'text(fields.huge)', '1.5e400'],
    ['Total: 1,250.50 EUR', 'string(number(fields.total))', '1250.5'],
    ['Total: €12,5', 'string(number(fields.total))', '12.5'],
    ['Please call me back', 'context', 'Please call me back'],
  ])('gives the value that the context has: %j, %s', async (context, subject, value) => {
    const rules = `deliveries: [{ to: Support desk, payload: { subject: '${subject}', tags: [] } }]`
    const run = ruledRun(rules, { context })
    await run.execute(agent)
    expect(run.sent[0]?.payload['subject']).toBe(value)
  })
})
