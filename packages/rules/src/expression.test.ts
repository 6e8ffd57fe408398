import { describe, expect, test } from '@jest/globals'
import { expectFast } from '../test/expect-fast.ts'
import { createEvaluation, type RuleInput } from './evaluation.ts'
import { compileExpression } from './expression.ts'
import type { JsonValue } from './to-json.ts'

class ContradictoryFields extends Map<string, unknown> {
  override get(name: string): unknown {
    if (name === 'unusable') throw new Error('the context has different values')
    return super.get(name)
  }
}

const TEXT = Array.from({ length: 3_000 }, (_, index) => index)
  .join(' ')
  .slice(0, 10_000)
const input: RuleInput = {
  fields: new ContradictoryFields([
    ['total', '250.50'],
    ['region', 'EU'],
    ['lines', [new Map(Object.entries({ sku: 'A', price: 2 })), new Map(Object.entries({ sku: 'B', price: 5 }))]],
    ['commas', ','.repeat(262_000)],
    ['brackets', '['.repeat(5_000) + ']'.repeat(5_000)],
    ['digits', '1'.repeat(262_000)],
    ['greek', 'ΐ'.repeat(87_000)],
    ['text', TEXT],
    ['parts', Array.from({ length: 10 }, (_, index) => TEXT.slice(index * 900, index * 900 + 2_000))],
    ['many', Array.from({ length: 5_000 }, (_, index) => index)],
    ['deep', JSON.parse('['.repeat(33) + ']'.repeat(33))],
  ]),
  items: [],
  context: 'x'.repeat(10_000),
  inputMessage: 'From the shop',
  workflow: { name: 'Orders', description: 'Handles orders' },
  now: new Date('2026-03-01T09:30:00Z'),
}

function evaluate(source: string, options: Partial<RuleInput> = {}): JsonValue {
  return compileExpression(source, 'value').evaluate(createEvaluation({ ...input, ...options }))
}

function errorOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'no error'
}

describe('an expression', () => {
  test.each<[string, JsonValue]>([
    ['number(fields.total) > 100', true],
    ['fields.lines.map(line, {"id": line.sku})', [{ id: 'A' }, { id: 'B' }]],
    ['fields.lines.filter(line, line.price > 2.0).map(line, line.sku)', ['B']],
    ['"region" in fields && fields["region"] == "EU"', true],
    ['input_message + " / " + workflow.name', 'From the shop / Orders'],
    ['now + duration("24h")', '2026-03-02T09:30:00.000Z'],
    ['9007199254740991', 9_007_199_254_740_991],
    ['-0.0', 0],
    ['sum([0.1, 0.2, 1, "3.30"])', 4.6],
    ['sum(fields.lines.map(line, line.price))', 7],
    ['sum([])', 0],
    ['sum([1e-7, 2e-7])', 3e-7],
    ['sum([1e-7, 2.5e-7])', 3.5e-7],
    ['sum([969.2, 27.37, 355.13, 5.551115123125783e-17])', 1351.7],
    ['sum([19.99, 5.01, 1.1102230246251565e-16])', 25],
    ['sum([2.0, 1e-308])', 2],
    ['substring("añ😀o", 2)', '😀o'],
    ['capture("Order A-17 and B-2", "[A-Z]-([0-9]+)")', '17'],
    ['capture("Order A-17", "[A-Z]-[0-9]+")', 'A-17'],
    ['default(fields.region, "none") + default(fields.vip, "none")', 'EUnone'],
    ['default(fields["Order value"], 5)', 5],
    ['default(fields.customer.address.city, "none")', 'none'],
    ['fields.lines.map(line, default(line.note, line.sku))', ['A', 'B']],
    ['list(" a, b c ,,d ")', ['a', 'b c', 'd']],
    ['list("Doe, Jane; Roe, Rick;")', ['Doe, Jane', 'Roe, Rick']],
    ['sum(list("1,50; 2,50 €"))', 4],
    [`list(' ["a, b", "c;d", true, 1.50]')`, ['a, b', 'c;d', true, 1.5]],
    ['list("[]")', []],
    ['list("[draft], final")', ['[draft]', 'final']],
    ['int(" -12 ") + int("+5")', -7],
    ['double("-1.50e1") + double(".5") + double("5.")', -9.5],
    ['date("2026-03-01T23:30:00-05:00") + date("2026-03-02 10:00:00") + date(now)', '2026-03-012026-03-022026-03-01'],
    ['timestamp(1772443800)', '2026-03-02T09:30:00.000Z'],
    ['timestamp(int(now)) == now', true],
    ['timestamp("2028-02-29T10:00:00.5+01:00")', '2028-02-29T09:00:00.500Z'],
    ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}') as JsonValue],
  ])('%s is %j', (source, result) => {
    expect(evaluate(source)).toEqual(result)
  })

  test.each([
    ['fields.nowhere', /^there is no field "nowhere"; test it with has\(…\) \(character 7\)$/],
    ['fields.region && true', /^must be true or false, but is of the type string; yes\(…\) converts a text$/],
    ['fields.region ? 1 : 2', /^must be true or false, but is of the type string; yes/],
    ['fields.lines[2]', /^there is no item 2; they are counted from 0$/],
    ['substring("abc", 2, 4)', /^a text of 3 characters has none from 2 to 4/],
    ['capture("abc", "x(.)")', /^"abc" has nothing that matches/],
    ['capture("abc", "(x)?abc")', /^what matches in "abc" has nothing of the first group/],
    ['default(number(fields.region), 1.0)', /^default\(…\) takes a field/],
    ['default(fields.vip)', /^default\(…\) takes a field/],
    ['sum(["a"])', /is no number such as 12/],
    ['size(list(null)) > 0', /^null is no list/],
    [
      `list('[{"sku": "A", "quantity": 1}]')`,
      /^"\[.*" is a list in JSON whose items are not all texts, numbers or booleans/,
    ],
    ['list("[1, null]")', /^"\[1, null\]" is a list in JSON whose items/],
    ['list("[1, 12345678901234567890]")', /^12345678901234567890 has more digits than a number keeps/],
    ['todo("which one") == 5', /^this is still open: which one/],
    ['todo("which one") || true', /^this is still open: which one$/],
    ['[1, 2].exists(x, x == 2 || todo("which one"))', /^this is still open: which one \(character 28\)$/],
    ['has(fields.unusable) || true', /^the context has different values/],
    ['item.sku', /^there is no variable item/],
    ['fields.constructor', /there is no field "constructor"/],
    ['number(fields.region)', /^"EU" is no number such as 12/],
    ['9007199254740992', /more digits than a JSON number keeps; use string/],
    ['[1, {"a": 9007199254740993u}]', /more digits than a JSON number keeps/],
    ['fields.deep', /^the result has more than 32 levels$/],
    ['1.0 / 0.0', /Infinity, which JSON does not have/],
    ['duration("1h")', /use string/],
    ['b"bytes"', /use string/],
    ['int("")', /^"" is no whole number such as 12$/],
    ['int("4.5")', /^"4.5" is no whole number such as 12$/],
    ['int("9223372036854775808") > 0', /^"9223372036854775808" is no whole number/],
    ['uint("0x10")', /^"0x10" is no whole number/],
    ['double(" ")', /^" " is no number such as 12 or -3\.50$/],
    // No comparison with NaN is true.
    ['double("1,250.00") >= 100.0', /^"1,250\.00" is no number such as 12/],
    ['date("2026-02-29")', /^"2026-02-29" is no date such as 2026-01-31$/],
    ['date("2026-03-01T25:00Z")', /^"2026-03-01T25:00Z" is no date/],
    ['timestamp("2026-02-30T00:00:00Z")', /^"2026-02-30T00:00:00Z" is no time such as 2026-01-31T09:00:00Z$/],
    ['timestamp("2026-01-31")', /^"2026-01-31" is no time such as/],
    ['timestamp(1772443800000)', /^1772443800000 is no Unix time in seconds$/],
    ['{1: 2}', /a key that is not a text/],
    ['dyn(1) + "a"', /^\+ cannot be used with int and string/],
    [`${'['.repeat(20)}[${'['.repeat(20)}`, /brackets more than 24 levels/],
  ])('%s fails', (source, message) => {
    expect(errorOf(() => evaluate(source))).toMatch(message)
  })

  test.each<[number, string[]]>([
    [1234.5, ['1,234.50', '1.234,50', '1 234,50', '1\u202F234,50', "1'234.5", '1’234,5', '1234,5']],
    [1_234_567, ['1,234,567', '1.234.567', '1 234 567', "1'234'567.0", '1.234.567,0', '$1,234,567.00']],
    [1234, ['1 234', "CHF 1'234", '1\u00A0234 €', '1234.000']],
    [-5.25, ['-5.25', '−5,25 €', '-$5.25', '€ -5.25', '-EUR 5,25', 'US$-5.25', '-5.25USD']],
    [0.125, ['0,125', '0.125 €']],
    [1234.567, ['1234,567', '1 234,567', '$1234.567', '1,234.567']],
    [1.234, ['1.234']],
  ])('number(…) reads %d in %j', (result, texts) => {
    expect(texts.map((context) => evaluate('number(context)', { context }))).toEqual(texts.map(() => result))
  })

  test.each([
    ['1,234', /^"1,234" can be 1\.234 or 1234; if it is 1234, write number\(replace\(…, ",", ""\)\)$/],
    ['$5,000', /^"\$5,000" can be 5 or 5000;/],
    ['-1.250 €', /^"-1\.250 €" can be 1\.25 or 1250; if it is 1250, write number\(replace\(…, "\.", ""\)\)$/],
    ...[
      '',
      '-',
      '1 23',
      '1 234 56',
      "1'234 567",
      '1 234.567,8',
      '12,34,5',
      '--5',
      '-€-5',
      '+5',
      '007',
      '5 eur',
      '1\n234',
    ].map((text): [string, RegExp] => [text, /is no number such as 12 or -3\.50$/]),
  ])('number(…) refuses %j', (context, message) => {
    expect(errorOf(() => evaluate('number(context)', { context }))).toMatch(message)
  })

  test('a failed call in one operand of || does not fail the other', () => {
    expect(evaluate('number(fields.region) > 1.0 || true')).toBe(true)
  })
})

describe('compileExpression', () => {
  test.each([
    ['#support', /^is no CEL expression: unexpected #; a text needs quotes of its own: '"text"'$/],
    ['1 +', /^is no CEL expression: unexpected \+/],
    [
      'total',
      /^there is no variable total; did you mean fields\.total, or the text '"total"'\? The variables are fields, items, context, input_message, workflow, now$/,
    ],
    ['feilds.total', /^there is no variable feilds; did you mean fields\?$/],
    ['constructor', /^there is no variable constructor/],
    ['nmber(1)', /^there is no function nmber; did you mean number\?$/],
    ['fields.region.trim()', /^trim\(…\) cannot be used with dyn; it is written trim\(value, …\)/],
    [
      'contains(context, "x")',
      /^contains\(…\) cannot be used with string and string; it is written value\.contains\(…\)/,
    ],
    ...[
      'fields.größe',
      'fields.Order ID',
      'fields."Order ID"',
      'fields.in',
      'fields.2nd',
      'fields.order.größe > 1',
    ].map((source): [string, RegExp] => [
      source,
      /; names such as Order ID, Größe and in are written fields\["Order ID"\]/,
    ]),
    ...['has(fields["Größe"])', 'has(fields)'].map((source): [string, RegExp] => [
      source,
      /^has\(…\) takes a name after a point, such as has\(fields\.total\); ask for another one by "Order ID" in fields$/,
    ]),
    ['number()', /^number\(…\) cannot be used with nothing/],
    [
      'number(fields.total) * 100',
      /^\* cannot be used with double and int; write the whole number with a point, such as 100\.0/,
    ],
    ['"a" + 1', /^\+ cannot be used with string and int/],
    ['yes(fields.vip) == "yes"', /^== cannot be used with bool and string \(character 16\)$/],
    ['number(fields.total) != "5"', /^!= cannot be used with double and string/],
    ['now == "2026-01-01"', /^== cannot be used with timestamp and string/],
    ['duration("1h") == now', /^== cannot be used with duration and timestamp/],
    ['[["a"], ["b"]].exists(list, list[0] == 1)', /^== cannot be used with string and int/],
    ['date(now) == 2026-03-04', /^== cannot be used with string and int/],
    ['number(fields.total) in ["5", "6"]', /^in cannot be used with double and list/],
    ['"a" && true', /^&& cannot be used with string$/],
    ['context.size', /^a value of the type string has no fields/],
    ['context.map(c, c)', /^a value of the type string has no items/],
    ['google.protobuf.Timestamp{}', /is not available/],
    ['""" ', /^is no CEL expression/],
    [' ', /^is empty/],
    ['"a" +'.repeat(2_000), /^must have at most 2,000 characters$/],
    ['2026-01-31', /^is a subtraction; a date needs quotes of its own: '"2026-01-31"'$/],
    [`1${'+1'.repeat(300)}`, /^has more than 500 operations$/],
    [`${'('.repeat(25)}1${')'.repeat(25)}`, /^has brackets more than 24 levels deep$/],
    [nest('[1].map(x, ', '1', 4), /^has more than 3 loops inside of each other/],
  ])('refuses %s', (source, message) => {
    expect(errorOf(() => compileExpression(source, 'value'))).toMatch(message)
  })

  test.each(['"yes"', 'number(fields.total)', '[true]', 'now'])('refuses %s as a condition', (source) => {
    expect(errorOf(() => compileExpression(source, 'condition'))).toMatch(/^must be true or false, but is of the type/)
  })

  test.each([
    'fields.vip',
    'true',
    'fields.vip == "yes"',
    'has(fields.vip)',
    'number(fields.total) == 5',
    'size(items) == 1.0 && 5 in [5.0]',
    '[1] == [1.0] && {"a": 1} == {"b": "c"} && [] != ["a"] && 1 in [] && 1 in [1, "a"]',
    'type(fields.vip) == string',
    'default(fields.vip, null) == null',
    'text(fields.region) != null && items != null',
    '[{"code": 1}, {"code": "a"}].exists(entry, entry.code == "a")',
    '{"EU": {"code": [1]}, "US": {"code": ["a"]}}[fields.region].code[0] == "a"',
    '{1: "a", 2: "b"}.exists(key, key == 1)',
  ])('takes %s as a condition', (source) => {
    expect(errorOf(() => compileExpression(source, 'condition'))).toBe('no error')
  })
})

describe('the work of an expression', () => {
  const list = `[${Array.from({ length: 30 }, (_, index) => index).join(',')}]`
  const tooMuch = 'the expressions take too much work'
  const oftenOf = (inner: string) => `${list}.all(a, ${list}.all(b, ${inner} || true))`

  test.each([
    ['loops in loops', nest(`${list}.map(x, `, 'x', 3), tooMuch],
    ['loops over a long list', 'fields.many.all(a, fields.many.exists(b, a == b))', tooMuch],
    ['loops without calls', 'fields.many.all(a, fields.many.all(b, true))', tooMuch],
    ['loops that absorb errors', 'fields.many.exists(a, fields.many.exists(b, b.c == 1))', tooMuch],
    ['a long list built item by item', 'fields.many.map(a, a).map(a, a)', tooMuch],
    ['long lists that are compared', 'fields.many.exists(a, fields.many == fields.many && a < 0.0)', tooMuch],
    ['searches in a long list', 'fields.many.all(a, a in fields.many)', tooMuch],
    ['a text that doubles', `[context]${'.map(x, x + x)'.repeat(30)}`, 'a text would be longer than 256 KiB'],
    ['a list that doubles', `[1]${'.map(x, [x, x])'.repeat(24)}`, tooMuch],
    ['doubled lists that are compared', `[[1]${'.map(x, [x, x])'.repeat(20)}].all(x, x == [x])`, tooMuch],
    ['a text that is replaced by itself', 'replace(context, "x", context)', 'a text would be longer than 256 KiB'],
    ['a text that is joined by itself', 'join(split(context, ""), context)', tooMuch],
    ['a list as text, many times', 'fields.many.all(a, text(fields.many) != "")', tooMuch],
    ['many times in a time zone', 'fields.many.map(a, now.getHours("Europe/Berlin"))', tooMuch],
    ['a large pattern', `context.matches("${String.raw`\\pL?`.repeat(60)}$")`, tooMuch],
    ['many patterns', 'split(context, "").all(x, context.matches("^" + x + "y"))', tooMuch],
    ['many lengths of a long text', oftenOf('size(fields.commas) < 0'), tooMuch],
    ['many parts of a long text', oftenOf('substring(fields.commas, 0, 1) == ""'), tooMuch],
    ['many searches in a long text', oftenOf('fields.digits.contains("112")'), tooMuch],
    [
      'a search for a long part that a long text nearly has everywhere',
      '(fields.digits + fields.total).contains("12" + substring(fields.digits, 0, 9998))',
      tooMuch,
    ],
    [
      'a split at a long part that a long text nearly has everywhere',
      'split(fields.digits, "12" + substring(fields.digits, 0, 9998)) == []',
      tooMuch,
    ],
    [
      'a replacement of a long part that a long text nearly has everywhere',
      'replace(fields.digits, "12" + substring(fields.digits, 0, 9998), "")',
      tooMuch,
    ],
    [
      'many searches for a part that is barely too long for linear time',
      oftenOf('fields.digits.contains("12" + substring(fields.digits, 0, 253))'),
      tooMuch,
    ],
    ['many capitals of a long text beyond Latin-1', oftenOf('upper(fields.greek).startsWith("x")'), tooMuch],
    ['many lists of a long text', oftenOf('size(list(replace(fields.commas, ",,", "a,"))) < 0'), tooMuch],
    ['many lists in JSON', oftenOf('list(fields.brackets) == []'), tooMuch],
    ['many replacements in a long text', oftenOf('replace(fields.commas, ",", ";") == ""'), tooMuch],
    ['whole numbers of many digits', oftenOf('int(fields.digits) < 0'), tooMuch],
    ['many long texts that are no numbers', oftenOf('number(fields.commas) < 0.0'), tooMuch],
    ['repetitions in a pattern', 'context.matches("((x?){30}x{30})")', 'the pattern is too large'],
  ])('is refused for %s', async (_name, source, message) => {
    const expression = compileExpression(source, 'value')
    await expectFast(() => expect(errorOf(() => expression.evaluate(createEvaluation(input)))).toContain(message))
  })

  test.each([
    ['a pattern that takes others exponential time', 'context.matches("(x+x+)+y")', false],
    ['the largest pattern for a long text', `context.matches("${'x?'.repeat(58)}y")`, false],
    ['a list of 1,000 items', 'size(fields.thousand.filter(a, a >= 0.0).map(a, a))', 1_000],
    [
      'a number of many groups',
      `number("1" + replace(${'context + '.repeat(5)}"", "x", ",234") + ".5") < 0.0 || true`,
      true,
    ],
    [
      'a number of many zeros',
      `number("0.1" + replace(${'context + '.repeat(5)}"", "x", "0") + "1") < 0.0 || true`,
      true,
    ],
    ['errors that a loop absorbs', 'fields.many.exists(a, a.b == 1) || true', true],
    ['searches for long parts in a long text', 'fields.parts.all(part, fields.text.contains(part))', true],
    [
      'a search for a long part that a context nearly has everywhere',
      'context.contains("xy" + substring(context, 0, 1998))',
      false,
    ],
    ['the longest text', 'size(context + context + context)', 30_000],
  ])('takes less than 50 ms for %s', async (_name, source, result) => {
    const fields = new Map([...input.fields, ['thousand', Array.from({ length: 1_000 }, (_, index) => index)]])
    const expression = compileExpression(source, 'value')
    await expectFast(() => expect(expression.evaluate(createEvaluation({ ...input, fields }))).toBe(result))
  })

  test('is counted over all expressions of a run', () => {
    const expression = compileExpression('size(fields.many.filter(a, a < 800.0))', 'value')
    const evaluation = createEvaluation(input)
    expect(expression.evaluate(evaluation)).toBe(800)
    expect(errorOf(() => expression.evaluate(evaluation))).toContain(tooMuch)
  })

  test.each([
    ['brackets', '('.repeat(24)],
    ['a chain', '1+'.repeat(990)],
    ['conditions', 'true?1:'.repeat(280)],
    ['loops', `fields.many${'.map(x,x)'.repeat(200)}`],
    ['negations', '!'.repeat(1_990)],
    ['fields', `fields${'.a'.repeat(900)}`],
  ])('is small for an expression of 2,000 characters that is not evaluated: %s', async (_name, source) => {
    await expectFast(() => expect(errorOf(() => compileExpression(source, 'value'))).toMatch(/^(?:no error|is|has)/))
  })
})

/** Loops in loops: `begin` before and `)` after, around the innermost. */
function nest(begin: string, innermost: string, levels: number): string {
  return begin.repeat(levels) + innermost + ')'.repeat(levels)
}
