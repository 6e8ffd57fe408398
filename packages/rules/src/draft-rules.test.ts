import { describe, expect, test } from '@jest/globals'
import {
  closestNameFinder,
  draftRules,
  readRefusal,
  type RefusalDetails,
  selectDraftSources,
} from '@workflow-service/contract'
import * as fc from 'fast-check'
import { expectFast } from '../test/expect-fast.ts'
import { createEvaluation } from './evaluation.ts'
import { compileExpression } from './expression.ts'
import { findSources } from './find-source.ts'
import { parseRules } from './parse-rules.ts'

const example = {
  order_id: 'A',
  customer: { name: 'E', 'e.mail': 'a@b.test' },
  quantity: 1,
  paid: true,
  tags: ['x'],
  lines: [{ sku: 'A' }],
}
const intake = { name: 'Order intake', example_request_body: example }

/** The refusal that is read from a run with this error, `code: message`. */
function refused(error: string, change: Partial<RefusalDetails> = {}) {
  const details = { sources: ['Order intake'], missing: [], unusable: [], unused: [], ...change }
  const steps = [{ kind: 'note', data: { code: error.split(':', 1)[0], text: '', details } }]
  return readRefusal({ error, steps })!
}

const NO_INPUT = {
  fields: new Map(),
  items: [],
  context: '',
  inputMessage: '',
  workflow: { name: '', description: '' },
  now: new Date(),
}

const missing = (field: string, closest: string | null = null) => ({ source: 'Order intake', field, closest })

/** Evaluates what the draft proposes for a field that is to be read from a text. */
function evaluateProposal(name: string, context: string) {
  const content = draftRules(refused('needs_a_model: x'), [intake])
  const proposal = new RegExp(`^ {6,8}${name}: 'todo\\(".*?such as (.*)"\\)'$`, 'm').exec(content)?.[1] ?? ''
  const expression = compileExpression(JSON.parse(`"${proposal}"`) as string, 'value')
  return expression.evaluate(createEvaluation({ ...NO_INPUT, context }))
}

describe('a draft of rules', () => {
  test('gets the closest names of 100 fields among 100 names within 50 ms', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `${'abcdefghij'.repeat(7)}${n}`)
    await expectFast(() => expect(names.map(closestNameFinder(names))).not.toContain(null))
    expect(closestNameFinder(['Cost', 'Order value', 'Value'])('lines[].value')).toBe('Value')
  })

  test('maps the closest names to the missing fields, and marks what is open', () => {
    const run = refused('payload_incomplete: no value', {
      missing: [
        missing('order_id', 'Order'),
        missing('customer.name', 'Costumer name'),
        missing('customer.e.mail'),
        missing('quantity', 'amount.value'),
        missing('paid', 'in'),
        missing('tags', 'labels'),
        missing('lines.0.sku', 'lines[].article'),
      ],
    })
    expect(draftRules(run, [intake])).toBe(`# payload_incomplete: no value
# What is in todo(…) is open. A run with an open todo sends nothing.
# This is the file rules.yaml of the workflow, in no folder: save it on the page of its files, or under files in a manifest.
deliveries:
  - to: "Order intake"
    payload:
      order_id: text(fields.Order)
      customer:
        name: 'text(fields["Costumer name"])'
        "e.mail": 'todo("a text for e.mail")'
      quantity: number(fields.amount.value)
      paid: 'yes(fields["in"])'
      tags: list(fields.labels)
      lines: 'todo("a list for lines.0.sku")'
`)
  })

  test('sends the items of a list, with what they have under similar names', () => {
    const run = refused('payload_incomplete: a list', {
      missing: [
        missing('order_id'),
        missing('customer.name', '[].customer.full_name'),
        missing('quantity', '[].amount'),
        missing('tags', '[].lines[].tag'),
      ],
      unusable: [{ source: 'Order intake', field: 'the context', reason: 'a list' }],
    })
    expect(draftRules(run, [intake])).toContain(`
  - to: "Order intake"
    for_each: items
    when: 'todo("does each item of the list get a payload? Write true, or a condition")'
    payload:
      customer:
        name: text(item.customer.full_name)
      quantity: number(item.amount)
      tags: 'todo("a list for tags")'
`)
  })

  test.each([
    ['no_destination: none', {}, /when: 'todo\("does it get a payload\?/],
    ['rules_needed: no. The sentence is: "If it\'s paid."', {}, /when: 'todo\(".*If it''s paid\.\\""\)'/],
    ['payload_incomplete: x', { unused: ['Erratum'] }, /when: 'todo\("may it be sent without the values of Erratum\?/],
    [
      'payload_incomplete: x',
      { unusable: [{ source: 'Order intake', field: 'the context', reason: 'a list' }] },
      /for_each: items\n    when: 'todo\("does each item of the list get a payload\?/,
    ],
    [
      'needs_a_model: x',
      {},
      /quantity: 'todo\(".* such as number\(capture\(context, \\"\(\?im\)\^\[-> \]\*quantity:\(\.\+\)\\"\)\)"\)'/,
    ],
    [
      'payload_incomplete: x',
      { missing: [missing('order_id')], unused: ['No.'] },
      /order_id: 'todo\("a text for order_id, such as text\(fields\[\\"No\.\\"\]\)"\)'/,
    ],
    [
      'payload_incomplete: x',
      { unusable: [{ source: 'Order intake', field: 'quantity', reason: '"5\n#" is no' }] },
      /quantity: 'todo\("the value cannot be used: \\"5 #\\" is no/,
    ],
  ])('for %s %j is valid, and a run with it fails', async (error, change, text) => {
    const content = draftRules(refused(error, change), [intake])
    expect(content).toMatch(text)
    const parsed = await parseRules(content)
    if ('errors' in parsed) throw parsed.errors[0]!
    expect(findSources(parsed.rules, [intake]).errors).toEqual([])
    const [rule] = parsed.rules.deliveries
    const evaluation = createEvaluation(NO_INPUT)
    expect(() => rule?.applies(evaluation) === true && rule.values(evaluation)).toThrow(/this is still open: /)
  })

  test.each([
    ['order_id', 'Hello,\r\nOrder ID: A-7 \r\nBye', 'A-7'],
    ['quantity', 'Quantity: 1,250.00 EUR\nBye', 1250],
    ['quantity', 'quantity:-5', -5],
    ['paid', 'Paid: No', false],
    ['paid', 'Prepaid: yes\nUnpaid: yes\n- Paid: No', false],
    ['quantity', 'Minimum quantity: 5\n> Quantity: 6', 6],
    ['name', 'Username: eve7\nCustomer name: Ada', 'Ada'],
    ['tags', 'Tags: gift, express\r\nBye', ['gift', 'express']],
  ])('for %s that is to be read from %j proposes an expression for the value as a whole', (name, context, value) => {
    expect(evaluateProposal(name, context)).toEqual(value)
    expect(() => evaluateProposal('quantity', 'Quantity: 5 or 6')).toThrow(/"5 or 6" is no number/)
  })

  test('proposes no expression for a list of objects that is to be read from a text', () => {
    expect(draftRules(refused('needs_a_model: x'), [intake])).toContain(`      lines: 'todo("a list for lines")'`)
  })

  test('is valid for any error, names and examples', async () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('a: b', '- x', "it's", '"', '\u0085', '{{', '#'),
    )
    const value = fc.object({
      maxDepth: 2,
      key: text.filter((key) => key !== '__proto__'),
      values: [fc.string(), fc.integer(), fc.boolean(), fc.constant(null)],
    })
    await fc.assert(
      fc.asyncProperty(text, fc.array(text, { maxLength: 3 }), value, async (error, names, any) => {
        const source = { name: 'Order intake', example_request_body: any }
        const fields = Object.entries(any).map(([name], index) => missing(name, names[index] ?? null))
        const content = draftRules(refused(`payload_incomplete: ${error}`, { missing: fields, unused: names }), [
          source,
        ])
        expect(await parseRules(content)).not.toHaveProperty('errors')
      }),
      { seed: 1, numRuns: 50 },
    )
  })

  test('leaves out fields before a source, without which a run would send to the others alone', async () => {
    const sources = Array.from({ length: 50 }, (_, n) => ({
      name: `受付 ${n}`,
      example_request_body: { ['名'.repeat(190)]: 'E', ['注'.repeat(190)]: 'E' },
    }))
    const fields = sources.flatMap(({ name, example_request_body: large }) =>
      Object.keys(large).map((field) => ({ source: name, field, closest: `${field}様` })),
    )
    const content = draftRules(refused('payload_incomplete: x', { missing: fields }), sources)
    const parsed = await parseRules(content)
    if ('errors' in parsed) throw parsed.errors[0]!
    expect(parsed.rules.deliveries.map(({ to }) => to)).toEqual(sources.map(({ name }) => name))
  })

  test.each([
    ['the fields of a source', 'needs_a_model: x', 1, 500],
    ['those of several', 'needs_a_model: x', 5, 80],
    ['many sources', `rules_needed: x. The sentence is: ${'注文が来たら'.repeat(30)}`, 50, 1],
  ])('is no larger than a file may be for %s, and says what it leaves out', async (_what, error, count, fields) => {
    const large = Object.fromEntries(Array.from({ length: fields }, (_, n) => [`number_${n}`, 1]))
    const sources = Array.from({ length: count }, (_, n) => ({ name: `受付 ${n}`, example_request_body: large }))
    const content = draftRules(refused(error), sources)
    const parsed = await parseRules(content)
    if ('errors' in parsed) throw parsed.errors[0]!
    expect(content).toContain('# Fields or webhook sources are left out here')
    expect(Buffer.byteLength(content)).toBeGreaterThan(30 * 1024)
  })

  test('has nothing for an object whose field has a path that the refusal cut off', async () => {
    const long = 'x'.repeat(250)
    const source = { name: 'Order intake', example_request_body: { customer: { [long]: 'E' }, paid: true } }
    const cut = missing(`customer.${long}`.slice(0, 200))
    const content = draftRules(refused('payload_incomplete: x', { missing: [cut, missing('paid')] }), [source])
    const parsed = await parseRules(content)
    if ('errors' in parsed) throw parsed.errors[0]!
    expect(parsed.rules.deliveries[0]?.payload).toEqual({ paid: 'todo("true or false for paid")' })
  })

  test('has the sources of the refusal, or those that the description names, or the first ones', () => {
    const sources = ['A', 'Order intake', 'B'].map((name) => ({ name }))
    const refusal = refused('no_destination: none')
    expect(selectDraftSources(refusal, 'B or A', sources)).toEqual([{ name: 'Order intake' }])
    expect(selectDraftSources({ ...refusal, details: undefined }, 'B or A', sources)).toEqual([
      { name: 'B' },
      { name: 'A' },
    ])
    expect(selectDraftSources({ ...refusal, details: undefined }, '', sources)).toEqual(sources)
    expect(draftRules(refused('no_destination: none'), [])).toContain('# There is no webhook source yet')
  })

  test.each([
    ['delivery_rejected: 500', false],
    [null, false],
    ['rules_needed: x', true],
    ['needs_a_model: x', true],
  ])('is for runs that the built-in agent refused: %s', (error, isRefused) => {
    const { details } = refused('rules_needed: x')
    const steps = [{ kind: 'note', data: { code: 'rules_needed', text: '', details } }]
    const refusal = readRefusal({ error, steps })
    expect(refusal !== undefined).toBe(isRefused)
    expect(refusal?.details?.sources).toEqual(error === 'rules_needed: x' ? ['Order intake'] : undefined)
  })
})
