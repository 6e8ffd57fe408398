import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { ApiError } from './errors.ts'
import { assertSimple, type BodyLimits, isJsonInUtf8, type JsonBody, readJsonBody } from './json-body.ts'

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

const LIMITS: BodyLimits = { maxBytes: 40_000, maxMembers: 1_000, maxDepth: 64 }

/** Reads the bytes as the body of a request with this content type. */
function read(body: string | Buffer, { limits = LIMITS, waitForTurn }: ReadOptions = {}): Promise<JsonBody> {
  const headers = { 'content-length': String(Buffer.byteLength(body)), 'content-type': 'application/json' }
  const req = Object.assign(new PassThrough().end(body), { headers })
  return readJsonBody(req as unknown as IncomingMessage, limits, waitForTurn)
}

interface ReadOptions {
  readonly limits?: BodyLimits
  readonly waitForTurn?: () => Promise<void>
}

async function codeOf(reading: Promise<JsonBody>): Promise<string> {
  const error: unknown = await reading.catch((thrown: unknown) => thrown)
  return error instanceof ApiError ? `${error.status} ${error.code}` : 'no ApiError'
}

describe('readJsonBody', () => {
  test('ignores a leading byte-order mark, and only that', async () => {
    const body = Buffer.concat([BYTE_ORDER_MARK, Buffer.from('{"a":1}')])
    expect(await read(body)).toEqual({ value: { a: 1 }, text: '{"a":1}' })
    expect(await codeOf(read(Buffer.concat([BYTE_ORDER_MARK, body])))).toBe('400 invalid_json')
    const inside = Buffer.concat([Buffer.from('{"a":'), BYTE_ORDER_MARK, Buffer.from('1}')])
    expect(await codeOf(read(inside))).toBe('400 invalid_json')
  })

  test.each([
    ['{"a":1,}', 'unexpected text at position 7 (line 1 column 8)'],
    ['{"a":', 'it ends too early'],
    [`{"secret":'x'}`, 'a value is missing, or is a text without double quotes'],
  ])('says what is wrong with %s, without what it holds', async (body, reason) => {
    await expect(read(body)).rejects.toThrow(`The body is not valid JSON: ${reason}.`)
  })

  test('uses the last of several members with the same name', async () => {
    expect((await read('{"a":1,"b":{"c":1,"c":2},"a":3}')).value).toEqual({ a: 3, b: { c: 2 } })
  })
})

test('a large body with too many members is refused unparsed', async () => {
  const members = Array.from({ length: 2_000 }, (_, index) => `"field ${index}":1`)
  expect(await codeOf(read(`{${members.join()}, no JSON`))).toBe('422 validation_error')
  expect(await codeOf(read(`{"list":[${Array(17_000).fill('1').join()}, no JSON`))).toBe('422 validation_error')
})

test('members are counted up to the limit only', () => {
  let reads = 0
  const bytes = new Proxy(Buffer.from(`[${'1,'.repeat(5_000)}1]`), {
    get: (target, name) => {
      reads += 1
      return name === 'length' ? target.length : target[Number(name)]
    },
  })
  assertSimple(bytes, { maxMembers: 5_001 })
  expect(reads).toBeGreaterThan(10_000)
  reads = 0
  expect(() => assertSimple(bytes, { maxMembers: 100 })).toThrow('at most 100 fields and list items')
  expect(reads).toBeLessThan(500)
})

test('a body that nests too deep is refused before it is parsed, objects and lists alike', async () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"a":', '}]'],
  ] as const) {
    const nest = (times: number) => `${open.repeat(times)}1${close.repeat(times)}`
    const levels = open.startsWith('[{') ? 2 : 1
    expect((await read(nest(64 / levels))).text).toBe(nest(64 / levels))
    expect(await codeOf(read(nest(64 / levels + 1)))).toBe('422 validation_error')
  }
  expect((await read(JSON.stringify(['[{'.repeat(100), [], [], {}]))).value).toHaveLength(4)
})

test('the ends of strings are found, also of long strings with any escape', () => {
  const text = fc.array(fc.constantFrom('\\', '"', ',', '[', 'x'.repeat(250), 'x'.repeat(600)), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), (texts) => {
      const bytes = Buffer.from(JSON.stringify(texts.map((parts) => parts.join(''))))
      assertSimple(bytes, { maxMembers: texts.length, maxDepth: 1 })
      expect(() => assertSimple(bytes, { maxMembers: texts.length - 1 })).toThrow('fields and list items')
    }),
  )
})

test('a body of at most uncheckedBytes is not checked', () => {
  const limits = { maxBytes: 1_000, maxMembers: 2, maxDepth: 2 }
  const readWith = (uncheckedBytes: number) => read('[[[1,2,3]]]', { limits: { ...limits, uncheckedBytes } })
  return Promise.all([
    expect(readWith(11)).resolves.toMatchObject({ value: [[[1, 2, 3]]] }),
    expect(readWith(10)).rejects.toThrow('2 levels'),
  ])
})

test('a large body waits for its turn before it is parsed, a small one does not', async () => {
  const turn = Promise.withResolvers<void>()
  const parsed: number[] = []
  const readings = [1_000, 17_000].map(async (length) => {
    await read(JSON.stringify('x'.repeat(length)), { waitForTurn: () => turn.promise })
    parsed.push(length)
  })
  await readings[0]
  for (let turns = 0; turns < 10; turns += 1) await nextTurn()
  expect(parsed).toEqual([1_000])
  turn.resolve()
  await readings[1]
  expect(parsed).toEqual([1_000, 17_000])
})

describe('isJsonInUtf8', () => {
  test('refuses more than 200 characters of any kind', () => {
    expect(isJsonInUtf8('application/json'.padEnd(200))).toBe(true)
    expect(isJsonInUtf8('application/json'.padEnd(201))).toBe(false)
  })

  test.each(['application/json', '\tAPPLICATION/json ;; Charset = UTF-8\t;', 'application/json;charset="utf-8"'])(
    'accepts %j: any letter case, white space around the parts',
    (type) => {
      expect(isJsonInUtf8(type)).toBe(true)
    },
  )

  test.each([
    '',
    'text/json',
    'application/jsonx',
    'application/json, application/json',
    'application/json; charset=utf-16',
    'application/json; charset="utf-8',
    'application/json; charset=utf-8=',
    'application/json; charset=utf-8; charset=utf-8',
    'application/json; version=1',
    'application /json',
    '\u00a0application/json',
    'application/json;\u00a0',
  ])('refuses %j', (type) => {
    expect(isJsonInUtf8(type)).toBe(false)
  })
})
