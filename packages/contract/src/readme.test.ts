import { DELIVERY_OUTCOMES } from './enumerations.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { LINK_KINDS } from './app/sign-in.ts'
import { VERIFICATION_REASONS } from './internal/resources.ts'
import { STEP_DATA } from './journal.ts'
import * as limits from './limits.ts'

const read = (path: string): string => readFileSync(join(import.meta.dirname, path), 'utf8')
const sections = new Map(
  read('../README.md')
    .split(/^## /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text]),
)

/** The names in code style, between two texts of a section. */
function namesBetween(section: string, from: string, to: string): string[] {
  const [, rest = ''] = (sections.get(section) ?? '').split(from)
  return [...(rest.split(to)[0] ?? '').replaceAll(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

test('the README lists every delivery outcome, verification reason and kind of step', () => {
  expect(namesBetween('Deliveries', 'with an outcome:', '\n\nA delivery').toSorted()).toEqual(
    [...DELIVERY_OUTCOMES].toSorted(),
  )
  expect(namesBetween('Webhook sources', 'with a `reason`:', '. A deleted').toSorted()).toEqual(
    [...VERIFICATION_REASONS].toSorted(),
  )
  expect(namesBetween('The journal', 'Kinds:', '`src')).toEqual(Object.keys(STEP_DATA))
})

test('the README of the application lists every kind of link', () => {
  const [, table = ''] = read('../../../services/app/README.md').split(/^\| Link .*\n\|[ |-]+\n/m)
  expect([...table.matchAll(/^\| `(\w+)`/gm)].slice(0, LINK_KINDS.length).map(([, kind]) => kind)).toEqual([
    ...LINK_KINDS,
  ])
})

test.each([
  ['context', limits.CONTEXT_MAX_LENGTH],
  ['Idempotency-Key', limits.IDEMPOTENCY_KEY_MAX_LENGTH],
  ['`search`', limits.SEARCH_MAX_LENGTH],
  ['URL', limits.ENDPOINT_URL_MAX_LENGTH],
  ['secret', limits.SIGNING_SECRET_MAX_LENGTH],
  ['the example', limits.EXAMPLE_MAX_BYTES / 1_024],
  ['compact JSON,', limits.EXAMPLE_MAX_FIELDS],
  ['named fields,', limits.EXAMPLE_MAX_LIST_LENGTH],
  ['A payload:', limits.PAYLOAD_MAX_BYTES / 1_024],
  ['256 KiB of compact JSON,', limits.PAYLOAD_MAX_VALUES],
  ['lists included),', limits.PAYLOAD_MAX_DEPTH],
  ['A list:', limits.LIST_MAX_LIMIT],
])('the README has the limit after "%s"', (text, limit) => {
  const words = (sections.get('Limits') ?? '').replaceAll(/\s+/g, ' ')
  const numbers = words
    .split(`${text} `)
    .slice(1)
    .map((rest) => Number(/^[\d,]+/.exec(rest)?.[0].replace(',', '')))
  expect(numbers).toContain(limit)
})
