import { describe, expect, test } from '@jest/globals'
import { OPERATIONS } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { ApiError } from './errors.ts'
import { requestChecker, type UncheckedRequest } from './check-request.ts'
import { Type } from '@workflow-service/contract/type'

const startRequest = (value: unknown) =>
  ({
    req: { url: '/', headersDistinct: {} },
    params: { workflow_id: '01890a5d-ac96-774b-bcce-b302099a8057' },
    body: { value, text: '' },
    principal: null,
  }) as unknown as UncheckedRequest<null>

describe('requestChecker', () => {
  const check = requestChecker(OPERATIONS.startWorkflow)
  test('counts any number of unknown fields', () => {
    const body = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`field${n}`, n]))
    const { message, details } = refusalOf(() => check(startRequest(body))) ?? {}
    expect(message).toBe('context is required (and 20000 more, of which details leaves out 19901).')
    expect(details).toHaveLength(100)
  })

  test('counts any number of violations in a list', () => {
    const list = Type.Object({ names: Type.Array(Type.String()) })
    const save = requestChecker({ id: 'save', method: 'put', path: '/', body: list })
    const names = Array.from({ length: 130_000 }, (_, n) => n)
    const { message, details } = refusalOf(() => save(startRequest({ names }))) ?? {}
    expect(message).toBe('names.0 must be a string (and 129999 more, of which details leaves out 129900).')
    expect(details).toHaveLength(100)
  })

  test('removes the white space around names and trimmed texts of a body, and around no others', () => {
    const path = { id: 'save', method: 'put', path: '/' }
    const [name, trimmed, storable] = ['name', 'trimmed', 'storable'].map((format) => Type.String({ format }))
    const save = requestChecker({ ...path, body: Type.Object({ name: name!, trimmed: trimmed!, storable: storable! }) })
    const value = { name: ' Ada\u0085', trimmed: '\n', storable: ' x ' }
    expect(save(startRequest(value)).body).toEqual({ name: 'Ada', trimmed: '', storable: ' x ' })
  })

  test('gives ids in lower case, also those of a list', () => {
    const id = Type.String({ format: 'uuid' })
    const body = Type.Object({ id, ids: Type.Array(id), names: Type.Array(Type.String()) })
    const save = requestChecker({ id: 'save', method: 'put', path: '/', body })
    const given = '01890A5D-AC96-774B-BCCE-B302099A8057'
    const value = { id: given, ids: [given], names: [given] }
    const lower = given.toLowerCase()
    expect(save(startRequest(value)).body).toEqual({ id: lower, ids: [lower], names: [given] })
  })

  test('takes a field named __proto__ as any other unknown one', () => {
    const body = JSON.parse('{"context":"text","__proto__":{"session_id":"x"}}') as object
    expect(() => check(startRequest(body))).toThrow('__proto__ is not a known field; remove it.')
  })

  test('names an unknown field as far as it can be read, and says of one without a name that it is in the body', () => {
    const long = '🚀'.repeat(100)
    expect(() => check(startRequest({ context: 'go', [long]: 1 }))).toThrow(`${long} is not a known`)
    const { message } = refusalOf(() => check(startRequest({ context: 'go', [`a${long}b`]: 1 }))) ?? {}
    expect(message).toBe(`a${'🚀'.repeat(99)}\ufffd… is not a known field; remove it.`)
    expect(() => check(startRequest({ context: 'go', '': 1 }))).toThrow('body has a field without a name; remove it.')
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
