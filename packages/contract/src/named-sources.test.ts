import { describe, expect, test } from '@jest/globals'
import { findNamedSources, findUnknownNames } from './named-sources.ts'

function named(text: string, names: string[]): string[] {
  return findNamedSources(
    text,
    names.map((name) => ({ name })),
  ).map(({ name }) => name)
}

describe('the webhook sources that a description names', () => {
  test('come in order of first appearance, each once', () => {
    expect(named('First Billing, then Orders, then Billing again.', ['Orders', 'Billing', 'Stock'])).toEqual([
      'Billing',
      'Orders',
    ])
  })

  test('come in that order regardless of their length', () => {
    expect(named('Log, Order intake, CRM', ['Order intake', 'CRM', 'Log'])).toEqual(['Log', 'Order intake', 'CRM'])
  })

  test('are found regardless of case and of the amount of white space', () => {
    expect(named('Send it to ORDER\n  intake.', ['Order intake'])).toEqual(['Order intake'])
    expect(named('an die STRAßE', ['Straße'])).toEqual(['Straße'])
    expect(named('caf\u0065\u0301', ['Caf\u00e9'])).toEqual(['Caf\u00e9'])
  })

  test('are those that begin first where names overlap, and of these the longest', () => {
    expect(named('Post to Order intake.', ['Order', 'Order intake', 'intake'])).toEqual(['Order intake'])
    expect(named('Post to Order intake, then to Order.', ['Order', 'Order intake'])).toEqual(['Order intake', 'Order'])
    expect(named('Post to a b c.', ['b c', 'a b'])).toEqual(['a b'])
  })

  test.each([
    ['Reorder today', 'order', false],
    ['orders', 'order', false],
    ['order_intake', 'order', false],
    ['order2', 'order', false],
    ['the order-list', 'order', true],
    ["the order's total", 'order', true],
    ['"order"', 'order', true],
    ['(order)', 'order', true],
    ['order', 'order', true],
    ['C++ and more', 'C++', true],
    ['send \u{1F4E6}orders\u{1F4E6} now', 'orders', true],
    ['\u{10400}orders', 'orders', false],
    ['orders\u{10428}', 'orders', false],
    ['orders orders2', 'orders', true],
    ['orders2 orders', 'orders', true],
    ['über Bestellung', 'Bestell', false],
    ['请发送到订单入口然后结束', '订单入口', true],
    ['주문접수에 보내세요', '주문접수', true],
    ['an order\u0301', 'order', false],
  ])('count only as whole words: %j names %j is %j', (text, name, isNamed) => {
    expect(named(text, [name])).toEqual(isNamed ? [name] : [])
  })

  test('are none for a blank name or an empty text', () => {
    expect(named('a b', ['  '])).toEqual([])
    expect(named('', ['Orders'])).toEqual([])
  })

  test.each([
    [
      'a name of each length from 1 to 200',
      '中'.repeat(50_000),
      (index: number) => '中'.repeat(1 + (index % 200)),
      250,
    ],
    [
      '1,000 names that almost match everywhere',
      '中'.repeat(50_000),
      (index: number) => `${'中'.repeat(199)}${index}`,
      0,
    ],
    [
      'combining marks in a row, which Unicode sorts',
      `a${'\u0301\u0316'.repeat(200_000)}`,
      (index: number) => `a${index}`,
      0,
    ],
  ])('are found in one pass: %s', (_what, text, nameOf, matches) => {
    const names = Array.from({ length: 1_000 }, (_, index) => nameOf(index))
    expect(named(text, names)).toEqual(matches > 0 ? ['中'.repeat(200)] : [])
  })

  test('are equal after 30 combining marks', () => {
    expect(named(`x a${'\u0301'.repeat(200)}`, [`a${'\u0301'.repeat(100)}`])).toHaveLength(1)
  })
})

describe('quoted texts that name no webhook source', () => {
  const sources = [{ name: 'Order intake' }, { name: 'CRM' }, { name: 'The "big" «shop»' }, { name: '5" disks' }]

  test.each([
    ['Post to "Order intake", then to "Shipping".', ['Shipping']],
    ['Post to "ORDER\u00a0 intake".', []],
    ['“Shipping”, „Lager“, «Stock», 「倉庫」', ['Shipping', 'Lager', 'Stock', '倉庫']],
    ['"Shipping" and "shipping"', ['Shipping']],
    ['Say "post it to the CRM now".', []],
    ['Send to the "Big"  «Shop», "The "big" «shop»", 5" disks and "big".', ['big']],
    ['a 5" disk and\n a "name"', ['name']],
    ['"" "  "', []],
    [`"${'x'.repeat(201)}" "y"`, ['y']],
  ])('%j: %j', (text, unknown) => {
    expect(findUnknownNames(text, sources)).toEqual(unknown)
  })

  test('are at most 20, found in one pass', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `"n${index}"`).join(' ')
    expect(findUnknownNames(many, sources)).toHaveLength(20)
    expect(findUnknownNames('„'.repeat(50_000), sources)).toEqual([])
    expect(findUnknownNames('"a b" '.repeat(10_000), sources)).toEqual(['a b'])
  })
})
