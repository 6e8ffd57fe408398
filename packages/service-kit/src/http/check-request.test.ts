import { describe, expect, test } from '@jest/globals'
import { OPERATIONS } from '@workflow-service/contract'
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

const startRequest = (value: object) =>
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
})
