import { expect, test } from '@jest/globals'
import type { CasePayload } from './app/evaluations.ts'
import { comparePayloads } from './compare-payloads.ts'

const to = (source: string, payload: object): CasePayload => ({
  source_id: source,
  source_name: source.toUpperCase(),
  payload: payload as Record<string, unknown>,
})

test('finds no difference in payloads and fields of another order', () => {
  const [one, two] = [to('a', { id: 1, lines: [{ x: 1, y: null }] }), to('a', { id: 2, lines: [] })]
  expect(
    comparePayloads([one, two, to('b', {})], [to('b', {}), two, to('a', { lines: [{ y: null, x: 1 }], id: 1 })]),
  ).toEqual([])
})

test('names the fields that differ, also added, missing and of another type', () => {
  const right = { id: 1, lines: [{ price: 5 }, { price: 6 }], note: 'x', same: {} }
  const sent = { id: '1', lines: [{ price: 5 }, { price: 7 }, { price: 8 }], same: {}, extra: null }
  expect(comparePayloads([to('a', right)], [to('a', sent)])).toEqual([
    { source_name: 'A', field: 'id', expected: '1', actual: '"1"' },
    { source_name: 'A', field: 'lines.1.price', expected: '6', actual: '7' },
    { source_name: 'A', field: 'lines.2', expected: null, actual: '{"price":8}' },
    { source_name: 'A', field: 'note', expected: '"x"', actual: null },
    { source_name: 'A', field: 'extra', expected: null, actual: 'null' },
  ])
  expect(comparePayloads([to('a', [])], [to('a', {})])).toHaveLength(1)
})

test('names payloads that are missing, and those that nothing asks for, each once', () => {
  const twice = [to('a', { id: 1 }), to('a', { id: 1 })]
  expect(comparePayloads(twice, [to('a', { id: 1 }), to('b', { id: 2 })])).toEqual([
    { source_name: 'A', field: '', expected: '{"id":1}', actual: null },
    { source_name: 'B', field: '', expected: null, actual: '{"id":2}' },
  ])
})

test('lists at most 20 differences, with the beginning of their values', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`f${n}`, 'long'.repeat(200)]))
  const differences = comparePayloads([to('a', many)], [to('a', {})])
  expect(differences).toHaveLength(20)
  expect(differences[0]!.expected!.length).toBeLessThanOrEqual(300)
})
