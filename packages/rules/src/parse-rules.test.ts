import { describe, expect, test } from '@jest/globals'
import { checkRules, checkWorkflow } from './check-workflow.ts'
import { createEvaluation } from './evaluation.ts'
import { findSources } from './find-source.ts'
import { expectFast } from '../test/expect-fast.ts'
import { parseRules, type Rules } from './parse-rules.ts'

async function errorsOf(text: string): Promise<string[]> {
  const parsed = await parseRules(text)
  return 'errors' in parsed ? parsed.errors.map(({ message }) => message) : []
}

async function rulesOf(text: string): Promise<Rules> {
  const parsed = await parseRules(text)
  if ('errors' in parsed) throw parsed.errors[0] ?? new Error('no error')
  return parsed.rules
}

const withPayload = (payload: string) => `deliveries:\n  - to: Desk\n    payload: ${payload}\n`

/** Whether the text was parsed already, so that the call needed no turn. */
async function parseInTurns(text: string) {
  let turns = 0
  const parsed = await parseRules(text, async () => void (turns += 1))
  return { parsed, isKnown: turns === 0 }
}

describe('parseRules', () => {
  test('parses a text again after a call that was given up', async () => {
    const text = withPayload('{ total: "7" }')
    await expect(parseRules(text, () => Promise.reject(new Error('gone')))).rejects.toThrow('gone')
    expect(await rulesOf(text)).toBeDefined()
  })

  test.each([
    ['', 'rules.yaml: is empty; it begins with "deliveries:"'],
    ['Send it', 'rules.yaml, line 1: must begin with "deliveries:"'],
    ['deliveries:\n  - Desk', 'rules.yaml, line 2, delivery 1: must have fields, such as "to: Order intake"'],
    [
      withPayload('text'),
      'rules.yaml, line 3, delivery 1, payload: must have fields, such as "total: number(fields.total)"',
    ],
    [
      'deliveries:\n  - to: Desk\nrules:\n  - to: Desk',
      'rules.yaml, line 3, rules: is not a known field; did you mean deliveries?',
    ],
    [
      'deliveries:\n  - to: Desk\n    if:\n      "true"',
      'rules.yaml, line 3, delivery 1, if: is not a known field; a delivery has to, when, for_each, payload',
    ],
    ['deliveries:\n  - to: Desk\n    when:\n      1 +', /^rules\.yaml, line 3, delivery 1, when: is no CEL expression/],
    ['deliveries: []', 'rules.yaml, line 1, deliveries: must have at least 1 item'],
    ['deliveries: [', /^rules\.yaml, line 1: is no valid YAML: /],
    ...[
      '!yes(fields.vip)',
      'has(fields.a) ? fields.a : "none"',
      '"Order " + text(fields.id)',
      'capture(context, "Total: (.+)")',
      String.raw`"capture(context, '\d+')"`,
      'list(fields.tags).map(tag, {"name": tag})',
      '{ b: capture(context, "a: b") }',
      '{ b: has(fields.a) ? 1 : 2 }',
    ].map((expression): [string, RegExp] => [
      `deliveries:\n  - to: Desk\n    payload:\n      a: ${expression}`,
      /^rules\.yaml, line 4: is no valid YAML: .+; quote an expression as a whole: '"Order " \+ text\(fields\.id\)'$/,
    ]),
    [
      withPayload('{ cents: round(number(fields.total), 2) }'),
      /payload\.cents: is no CEL expression: unexpected \(; a bracket is not closed: YAML ends an expression without quotes at " #", and in \{ \} and \[ \] at a comma/,
    ],
    ['deliveries:\n  - to: Desk\n    when: context.contains("order #5")', /when: .+; a bracket is not closed: /],
    ['deliveries: []\n---\nmore: true', 'rules.yaml, line 2: has several documents (---)'],
    ['deliveries:\n  - to: Desk\n    to: Shop', 'rules.yaml, line 3: has the key "to" twice in one object'],
    ['deliveries:\n  - when: "true"', 'rules.yaml, line 2, delivery 1, to: is missing'],
    [
      'deliveries:\n  - to: Desk\n    wehn: "true"',
      /^rules\.yaml, line 3, delivery 1, wehn: is not a known field; did you mean when\? /,
    ],
    ['deliveries:\n  - to: Desk\n  - to: Shop\n    when: 1', 'rules.yaml, line 4, delivery 2, when: must be a string'],
    [
      withPayload('{ a: { b: [1, "x +"] } }'),
      /^rules\.yaml, line 3, delivery 1, payload\.a\.b\[1\]: is no CEL expression/,
    ],
    ...[
      '{ due: 2026-01-31 }',
      '{ due: !!binary aGVsbG8= }',
      '{ due: !!set { x } }',
      '2026-01-31',
      '!!omap [due: 1]',
    ].map((payload): [string, RegExp] => [
      `%YAML 1.1\n---\n${withPayload(payload)}`,
      /^rules\.yaml, line 5, delivery 1, payload(?:\.due)?: is no value of JSON; write a text such as '"2026-01-31"'$/,
    ]),
    ...['9007199254740993', '9007199254740993.0', '-.1234567890123456789', '.inf'].map((number): [string, RegExp] => [
      withPayload(`{ total: ${number} }`),
      /payload\.total: is a number that JSON cannot keep; write fewer digits, or a text such as '"12345"'$/,
    ]),
  ])('refuses %j', async (text, message) => {
    expect(await errorsOf(text)).toEqual([
      expect.stringMatching(message instanceof RegExp ? message : literally(message)),
    ])
  })

  test('reports the errors of all expressions, at most 20', async () => {
    const deliveries = Array.from({ length: 30 }, () => '  - to: Desk\n    when: total > 100')
    expect(await errorsOf(`deliveries:\n${deliveries.join('\n')}`)).toHaveLength(20)
  })

  test('refuses more than 5,000 operations in all expressions', async () => {
    const text = `deliveries:\n${`  - to: Desk\n    when: "1${'+1'.repeat(200)} > 0"\n`.repeat(20)}`
    expect(await errorsOf(text)).toEqual(['rules.yaml, line 1: has more than 5,000 values and operations'])
  })

  test('takes numbers of which a double keeps every digit', async () => {
    const list = '[.30000000000000004, +1.50, -.5, 1., 1e20, 1.2345678901234567e+30, 1234567890123456.]'
    const rules = await rulesOf(withPayload(`{ list: ${list} }`))
    const values = [0.30000000000000004, 1.5, -0.5, 1, 1e20, 1.2345678901234567e30, 1234567890123456]
    expect(rules.deliveries[0]?.values({} as never)).toEqual({ list: values })
  })

  test('takes anchors and aliases, and a condition that YAML reads as a boolean', async () => {
    expect(await errorsOf(withPayload('{ a: &text fields.a, b: *text }'))).toEqual([])
    expect(await errorsOf('deliveries:\n  - to: Desk\n    when: true')).toEqual([])
  })

  test.each([
    ['more than 32 KiB', `#${' '.repeat(32 * 1024)}`, /larger than 32 KiB/],
    ['brackets in brackets', withPayload(`{ a: ${'['.repeat(5_000)}`), /brackets more than 64 levels/],
    ['lists in lists', '- '.repeat(4_000), /nested too deeply/],
    ['many keys', withPayload(`{ ${Array.from({ length: 3_000 }, (_, n) => `a${n}: 1`).join(', ')} }`), /10,000 words/],
    ['deep payloads', withPayload(`{ a: ${'['.repeat(40)}${']'.repeat(40)} }`), /more than 32 levels/],
    ['a billion laughs', billionLaughs(), /repeats too much with its aliases/],
    ['aliases of what they are in', withPayload('&p { a: *p, b: *p }'), /repeats too much with its aliases/],
    ['many aliases', `a: [&a 1${', *a'.repeat(3_000)}]`, /500 aliases/],
    ['aliases of aliases', `a: [${'{},'.repeat(1_500)}&a 1, &b [${'*a,'.repeat(499)}], *b]`, /deliveries/],
    ['many errors', `deliveries: [${','.repeat(9_000)}]`, /no valid YAML/],
  ])('refuses %s within 50 ms', async (_name, text, message) => {
    // Each attempt parses: what was found in the same text is known.
    const errorsAt = (attempt: number) => errorsOf(text + '\n'.repeat(attempt))
    await expectFast(async (attempt) => expect((await errorsAt(attempt))[0]).toMatch(message))
  })

  test('lets other work go on while it compiles the largest file', async () => {
    const expression = `fields.a == '${'a'.repeat(1_500)}' ${'|| true '.repeat(50)}`
    const text = `deliveries:\n${`  - to: Desk\n    when: "${expression}"\n`.repeat(15)}`
    let turns = 0
    await parseRules(text, async () => void (turns += 1))
    // Two of them between the steps that parse the YAML.
    expect(turns).toBeGreaterThan(2)
  })

  test('lets other work go on between the checks of several workflows', async () => {
    let turns = 0
    const work = () => {
      turns += 1
      next = setImmediate(work)
    }
    let next = setImmediate(work)
    for (let count = 0; count < 3; count += 1) await checkWorkflow({ description: 'Send it to A.', rules: null }, [])
    clearImmediate(next)
    expect(turns).toBeGreaterThan(2)
  })
})

describe('a text', () => {
  test.each([
    ['refused', 'deliveries:\n  - to: Desk\n    when: 1 +'],
    ['taken', 'deliveries:\n  - to: A desk'],
  ])(
    'that was %s is not parsed again, until as much as six of the largest files was used since',
    async (_what, text) => {
      const first = await parseInTurns(text)
      expect(first.isKnown).toBe(false)
      const others = Array.from({ length: 6 }, (_, n) => `${text} #${'x'.repeat(31_000)}${n}`)
      for (const other of others) await parseInTurns(other)
      expect(await parseInTurns(text)).toEqual({ parsed: first.parsed, isKnown: true })
      for (const other of others.map((content) => `${content}y`)) await parseInTurns(other)
      const [last, again] = await Promise.all([parseInTurns(others.at(-1)!), parseInTurns(others.at(-1)!)])
      expect([last.isKnown, again.isKnown]).toEqual([false, true])
      expect((await parseInTurns(text)).isKnown).toBe(false)
    },
  )
})

test('a condition that is a text says how to convert it', async () => {
  const [rule] = (await rulesOf('deliveries:\n  - to: Desk\n    when: fields.vip')).deliveries
  const workflow = { name: '', description: '' }
  const fields = new Map([['vip', 'yes']])
  const evaluation = createEvaluation({ fields, items: [], context: '', inputMessage: '', workflow, now: new Date() })
  const message = 'rules.yaml, line 3, delivery 1, when: must be true or false, but is "yes"; yes(…) converts a text'
  expect(() => rule?.applies(evaluation)).toThrow(message)
})

test.each([
  ['not given', '{ cnets: 5 }'],
  ['given by expressions', `{ cnets: 5, ${Array.from({ length: 30 }, (_, n) => `f${n}: fields.f${n}`).join(', ')} }`],
])('a field that the example does not have is found beside 30 that are %s', async (_how, payload) => {
  const example = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, n]))
  const options = { readExample: () => Promise.resolve(example) }
  const { mismatches } = await checkRules(withPayload(payload), [{ name: 'Desk' }], options)
  const message = expect.stringMatching(/^rules\.yaml, line 3, delivery 1, payload\.cnets: is not in the example/)
  expect(mismatches).toMatchObject([{ line: 3, message }])
})

test('fields that the example does not have are found within 50 ms among objects without any of its fields', async () => {
  const example = { list: [Object.fromEntries(Array.from({ length: 499 }, (_, n) => [`f${n}`, n]))] }
  const options = { waitForTurn: async () => {}, readExample: () => Promise.resolve(example) }
  const rules = withPayload(`{ list: [${Array.from({ length: 3_000 }, () => '{}').join(',')}], other: 1 }`)
  await checkRules(rules, [{ name: 'Desk' }], options)
  // The text is parsed by now.
  await expectFast(async () => {
    expect((await checkRules(rules, [{ name: 'Desk' }], options)).mismatches).toHaveLength(1)
  })
})

describe('findSources', () => {
  const sources = [{ name: 'Big deals' }, { name: 'Support desk' }]

  test('finds each source regardless of case, white space and how its letters are composed', async () => {
    const all = [...sources, { name: 'Dépôt' }]
    const rules = await rulesOf('deliveries:\n  - to: SUPPORT  desk\n  - to: Big deals\n  - to: " De\u0301po\u0302t "')
    expect(findSources(rules, all)).toEqual({ found: [all[1], all[0], all[2]], errors: [] })
  })

  test('finds one of several sources that differ in white space by its own, and refuses any other', async () => {
    const alike = [{ name: 'Orders EU' }, { name: 'Orders  EU' }]
    const rules = await rulesOf('deliveries:\n  - to: Orders EU\n  - to: orders  eu\n  - to: Orders   EU')
    const { found, errors } = findSources(rules, alike)
    expect(found).toEqual([alike[0], alike[1], undefined])
    expect(errors.map(({ message }) => message)).toEqual([
      'rules.yaml, line 4, delivery 3, to: "Orders   EU" can be several webhook sources; write the exact name of one',
    ])
  })

  test('suggests a similar name', async () => {
    const rules = await rulesOf('deliveries:\n  - to: Big deal\n  - to: Elsewhere')
    expect(findSources(rules, sources).errors.map(({ message }) => message)).toEqual([
      'rules.yaml, line 2, delivery 1, to: there is no webhook source "Big deal"; did you mean "Big deals"?',
      'rules.yaml, line 3, delivery 2, to: there is no webhook source "Elsewhere"',
    ])
  })

  test('looks for similar names of the largest organization within 50 ms', async () => {
    const long = 'a'.repeat(8)
    const rules = await rulesOf(`deliveries:\n${`  - to: x${long}x\n`.repeat(50)}`)
    const many = Array.from({ length: 1_000 }, (_, n) => ({ name: `${long}${n}` }))
    await expectFast(() => expect(findSources(rules, many).errors).toHaveLength(50))
  })
})

function billionLaughs(): string {
  const levels = 'abcdefghi'.split('')
  const itemsOf = (level: number) => Array<string>(9).fill(level ? `*${levels[level - 1]}` : '1')
  return levels.map((name, level) => `${name}: &${name} [${itemsOf(level).join(',')}]`).join('\n')
}

function literally(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}$`)
}
