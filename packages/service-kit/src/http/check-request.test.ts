import { describe, expect, test } from '@jest/globals'
import { parseQuery } from './check-request.ts'

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
