import { describe, expect, test } from '@jest/globals'
import { OPERATIONS } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { ApiError } from './errors.ts'
import { parseQuery, requestChecker, type UncheckedRequest } from './check-request.ts'

describe('parseQuery', () => {
  test.each<[target: string, values: Record<string, string[]>]>([
    ['/', {}],
    ['/?', {}],
    ['/?a=1', { a: ['1'] }],
    ['/?a=1&b=2&a=3', { a: ['1', '3'], b: ['2'] }],
    ['/?a', { a: [''] }],
    ['/?a=', { a: [''] }],
    ['/?=1', { '': ['1'] }],
    ['/?a=1=2', { a: ['1=2'] }],
    ['/?&&a=1&', { a: ['1'] }],
    ['/?a=x+y%2Bz', { a: ['x y+z'] }],
    ['/?%61=%C3%9F', { a: ['ß'] }],
    ['/?a?=1?2', { 'a?': ['1?2'] }],
    ['/?__proto__=1', { ['__proto__']: ['1'] }],
  ])('reads %s', (target, values) => {
    expect([...parseQuery(target)]).toEqual(Object.entries(values))
  })

  test.each(['/?a=%', '/?a=%f', '/?a=%zz', '/?%ff=1', '/?a=%C3%28'])('refuses %s', (target) => {
    expect(() => parseQuery(target)).toThrow(URIError)
  })
})

const startRequest = (value: unknown) =>
  ({
    req: { url: '/', headers: {} },
    params: { workflow_id: '01890a5d-ac96-774b-bcce-b302099a8057' },
    body: { value, text: '' },
    principal: null,
  }) as unknown as UncheckedRequest<null>

describe('requestChecker', () => {
  const check = requestChecker(OPERATIONS.startWorkflow)
  test('counts any number of unknown fields', () => {
    const body = Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`field${n}`, n]))
    expect(() => check(startRequest(body))).toThrow(
      'context is required (and 200000 more, of which details leaves out 199901).',
    )
  })

  test('takes a field named __proto__ as any other unknown one', () => {
    const body = JSON.parse('{"context":"text","__proto__":{"session_id":"x"}}') as object
    expect(() => check(startRequest(body))).toThrow('__proto__ is not a known field; remove it.')
  })

  test('accepts any JSON body or refuses it with violations, and never fails otherwise', () => {
    const body = fc.oneof(
      fc.jsonValue(),
      fc.record({ context: fc.jsonValue(), session_id: fc.jsonValue() }, { requiredKeys: [] }),
    )
    fc.assert(
      fc.property(body, (value) => {
        const { details = [{ field: 'accepted' }] } = refusalOf(() => check(startRequest(value))) ?? {}
        expect(details.every(({ field }) => field !== '')).toBe(true)
        expect(details.length).toBeGreaterThan(0)
      }),
      { seed: 1, numRuns: 300 },
    )
  })
})

describe('the query parser', () => {
  test('reads back every query that URLSearchParams writes', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 })
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 5 }), (pairs) => {
        const expected = new URLSearchParams(pairs)
        const values = parseQuery(`/?${expected.toString()}`)
        expect([...values.keys()]).toEqual([...new Set(expected.keys())])
        for (const [name, given] of values) expect(given).toEqual(expected.getAll(name))
      }),
      { seed: 2 },
    )
  })

  test('gives text for any target, or throws URIError', () => {
    const target = fc.array(fc.constantFrom('%', '%c3', '%9f', 'a', '=', '&', '?', '+', '[', ']', '#'), {
      maxLength: 30,
    })
    fc.assert(
      fc.property(target, (parts) => {
        try {
          return [...parseQuery(`/?${parts.join('')}`)].flat(2).every((text) => typeof text === 'string')
        } catch (error) {
          return error instanceof URIError
        }
      }),
      { seed: 3, numRuns: 500 },
    )
  })
})

/** The 422 with which the call ended; undefined if it did not throw. Another error fails the test. */
function refusalOf(call: () => unknown): ApiError | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (error instanceof ApiError && error.status === 422) return error
    throw error
  }
}
