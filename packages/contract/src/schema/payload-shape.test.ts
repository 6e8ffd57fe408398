import { isDeepStrictEqual } from 'node:util'
import { describe, expect, jest, test } from '@jest/globals'
import * as fc from 'fast-check'
import { findPayloadMismatches } from './payload-mismatches.ts'
import { allowsAnyField, allowsAnyValue, inferShape, type ObjectShape, type PayloadShape } from './payload-shape.ts'

/** Few names and values, so that values of one position often have equal fields and types. */
const { object: anyExample } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('x', 1, 1.5, true, null),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'constructor'), tie('value'), { noNullPrototype: true }),
}))

describe('inferShape', () => {
  test('reads an example once', () => {
    let reads = 0
    const example = new Proxy({ a: 1 }, { ownKeys: (target) => ((reads += 1), Reflect.ownKeys(target)) })
    expect(findPayloadMismatches(example, { a: 2 })).toEqual([])
    expect(inferShape(example)).toBe(inferShape(example))
    expect(reads).toBe(1)
  })

  test('gives the shape that merging the shapes of the items one by one gives', () => {
    fc.assert(
      fc.property(anyExample, (example) => {
        expect(isDeepStrictEqual(inferShape(example), shapeOf(example))).toBe(true)
      }),
      { seed: 1, numRuns: 700 },
    )
  })

  test('requires the fields that all objects have, in the order of their first appearance', () => {
    const shape = inferShape({
      lines: [
        { a: 1, b: 1 },
        { c: 1, b: 1 },
        { b: 'x', a: 1 },
      ],
    })
    const lines = shape.object?.fields.get('lines')?.list?.object
    expect([...(lines?.fields.keys() ?? [])]).toEqual(['a', 'b', 'c'])
    expect([...(lines?.required ?? [])]).toEqual(['b'])
  })

  // Merging copied the fields met so far for every item, which stalled the process for 38 s.
  test('takes a number of steps in proportion to a list of objects with different fields', () => {
    const lines = Array.from({ length: 1_000 }, (_, index) => ({ [`field_${index}`]: 1 }))
    const entriesAdded = jest.spyOn(Map.prototype, 'set')
    const shape = inferShape({ lines })
    const steps = entriesAdded.mock.calls.length
    entriesAdded.mockRestore()
    expect(shape.object?.fields.get('lines')?.list?.object?.fields.size).toBe(1_000)
    // Each field is added to the draft, and then to the shape.
    expect(steps).toBe(2 * 1_001)
  })
})

describe('a payload that is made from the shape of an example', () => {
  test('always follows the example', () => {
    const pair = anyExample.chain((example) => fc.tuple(fc.constant(example), payloadOf(inferShape(example))))
    fc.assert(
      fc.property(pair, ([example, payload]) => {
        expect(findPayloadMismatches(example, payload)).toEqual([])
      }),
      { seed: 1, numRuns: 1_000 },
    )
  })
})

function payloadOf(shape: PayloadShape): fc.Arbitrary<unknown> {
  if (allowsAnyValue(shape)) return fc.jsonValue({ maxDepth: 1 })
  const kinds: fc.Arbitrary<unknown>[] = []
  if (shape.object) kinds.push(objectOf(shape.object))
  if (shape.list) kinds.push(fc.array(payloadOf(shape.list), { maxLength: 3 }))
  for (const scalar of shape.scalars) {
    if (scalar === 'null') kinds.push(fc.constant(null))
    else if (scalar === 'boolean') kinds.push(fc.boolean())
    else if (scalar === 'string') kinds.push(fc.string())
    else kinds.push(fc.double({ noNaN: true, noDefaultInfinity: true }))
  }
  return fc.oneof(...kinds)
}

function objectOf(object: ObjectShape): fc.Arbitrary<unknown> {
  if (allowsAnyField(object)) return fc.dictionary(fc.string(), fc.boolean(), { noNullPrototype: true })
  const fields = Object.fromEntries([...object.fields].map(([name, shape]) => [name, payloadOf(shape)]))
  return fc.record(fields, { requiredKeys: [...object.required], noNullPrototype: true })
}

/** The definition: the shape of a list is that of its items, merged pair by pair. */
function shapeOf(value: unknown): PayloadShape {
  if (Array.isArray(value)) {
    const items = value.map(shapeOf)
    return { scalars: new Set(), object: null, list: items.length === 0 ? nothing() : items.reduce(merge) }
  }
  if (typeof value === 'object' && value !== null) {
    const fields = new Map(Object.entries(value).map(([name, field]) => [name, shapeOf(field)]))
    return { scalars: new Set(), list: null, object: { fields, required: new Set(fields.keys()) } }
  }
  const number = Number.isInteger(value) ? 'integer' : 'number'
  const scalar = value === null ? 'null' : typeof value === 'number' ? number : (typeof value as 'string' | 'boolean')
  return { ...nothing(), scalars: new Set([scalar]) }
}

function nothing(): PayloadShape {
  return { scalars: new Set(), object: null, list: null }
}

function merge(a: PayloadShape, b: PayloadShape): PayloadShape {
  const scalars = new Set([...a.scalars, ...b.scalars])
  if (scalars.has('number')) scalars.delete('integer')
  return {
    scalars,
    object: a.object && b.object ? mergeObjects(a.object, b.object) : (a.object ?? b.object),
    list: a.list && b.list ? merge(a.list, b.list) : (a.list ?? b.list),
  }
}

function mergeObjects(a: ObjectShape, b: ObjectShape): ObjectShape {
  const fields = new Map(a.fields)
  for (const [name, shape] of b.fields) fields.set(name, merge(fields.get(name) ?? nothing(), shape))
  return { fields, required: new Set([...a.required].filter((name) => b.required.has(name))) }
}
