import { describe, expect, jest, test } from '@jest/globals'
import { findPayloadMismatches } from './payload-mismatches.ts'
import { inferShape } from './payload-shape.ts'

describe('inferShape', () => {
  test('reads an example once', () => {
    let reads = 0
    const example = new Proxy({ a: 1 }, { ownKeys: (target) => ((reads += 1), Reflect.ownKeys(target)) })
    expect(findPayloadMismatches(example, { a: 2 })).toEqual([])
    expect(inferShape(example)).toBe(inferShape(example))
    expect(reads).toBe(1)
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
    expect(steps).toBe(2_002)
  })
})
