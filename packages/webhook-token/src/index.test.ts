import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { anyCharacter } from '@workflow-service/testkit/any-character'
import {
  checkServiceSignature,
  checkServiceToken,
  createDeliveryMemory,
  createServiceHeaders,
  createServiceSignature,
  createServiceToken,
  SERVICE_TOKEN_HEADER,
  verifyServiceToken,
} from './index.js'

const secret = 'whsec-example-3f9d1c7b5a2e8046'
const timestamp = 1_750_000_000
const signature = 'e89d45153bbf9ddd52ef60126482a6dd05b0063a2a4ac75192cc45635adc79b2'
const token = 'MTc1MDAwMDAwMC5lODlkNDUxNTNiYmY5ZGRkNTJlZjYwMTI2NDgyYTZkZDA1YjAwNjNhMmE0YWM3NTE5MmNjNDU2MzVhZGM3OWIy'
const now = () => timestamp * 1000
const sign = (text: string) => createHmac('sha256', secret).update(text, 'latin1').digest('hex')

/** The text with up to three other bytes at any position. */
const withBytes = (text: string) =>
  fc
    .tuple(fc.nat(text.length), fc.nat(1), fc.uint8Array({ maxLength: 3 }))
    .map(
      ([index, replaced, more]) =>
        text.slice(0, index) + Buffer.from(more).toString('latin1') + text.slice(index + replaced),
    )

describe('createServiceToken', () => {
  test('creates the token of the published vector, which openssl and Python computed', async () => {
    expect(await createServiceToken(secret, { now })).toBe(token)
    expect(Buffer.from(token, 'base64').toString()).toBe(`${timestamp}.${signature}`)
  })

  test('rounds the clock down to whole seconds', async () => {
    expect(await createServiceToken(secret, { now: () => timestamp * 1000 + 999 })).toBe(token)
    expect(await createServiceToken(secret, { now: () => timestamp * 1000 + 1000 })).not.toBe(token)
  })

  test('uses the secret as text, even if it looks like hex or Base64', async () => {
    const made = await Promise.all(['6162', 'YWI=', 'ab', 'схема-🔑'].map((each) => createServiceToken(each, { now })))
    expect(new Set(made).size).toBe(4)
  })

  test('throws for an empty secret', async () => {
    await expect(createServiceToken('')).rejects.toThrow(TypeError)
    await expect(createServiceToken(undefined)).rejects.toThrow(
      'the signing secret must be a non-empty string, and is undefined',
    )
  })
})

describe('checkServiceToken', () => {
  test('accepts the published vector at its own time and returns the timestamp', async () => {
    expect(await checkServiceToken(token, secret, { now })).toEqual({ ok: true, timestamp })
    expect(await checkServiceToken([token], secret, { now })).toEqual({ ok: true, timestamp })
  })

  test.each<[string, string | string[] | null | undefined, string?]>([
    ['is undefined', undefined, 'missing'],
    ['is null', null, 'missing'],
    ['is empty', '', 'missing'],
    ['is an empty list', [], 'missing'],
    ['is repeated', [token, token], 'repeated'],
    ['is repeated in one text', `${token}, ${token}`],
    ['is not Base64', `${timestamp}.${signature}`],
    ['has a line end', `${token}\n`],
    ['has superfluous padding', `${token}=`],
    ['has bits set after its last byte', base64(`0${timestamp}.${signature}`).replace(/.==$/u, 'Z==')],
    ['has no dot', base64(`${timestamp}${signature}`)],
    ['has no timestamp', base64(`.${signature}`)],
    ['has a timestamp with a sign', base64(`+${timestamp}.${signature}`)],
    ['has a timestamp with a fraction', base64(`${timestamp}.5.${signature}`)],
    ['has a timestamp with spaces', base64(` ${timestamp} .${signature}`)],
    ['has a timestamp of 20 digits', base64(`${'9'.repeat(20)}.${signature}`)],
    ['has a million characters', base64(`${timestamp}.${signature}`.padEnd(1_000_000, 'x'))],
  ])('rejects a value that %s', async (_, value, reason = 'malformed') => {
    expect(await checkServiceToken(value, secret, { now })).toEqual({ ok: false, reason })
  })

  test.each<[number, number | undefined, string?]>([
    [-301, undefined, 'too_new'],
    [-300, undefined],
    [300, undefined],
    [301, undefined, 'too_old'],
    [10, 10],
    [10, 9, 'too_old'],
    [NaN, undefined, 'too_old'],
  ])('%i seconds later with a tolerance of %p, by default 300', async (seconds, toleranceSeconds, reason = '') => {
    const options = {
      now: () => (timestamp + seconds) * 1000,
      ...(toleranceSeconds !== undefined && { toleranceSeconds }),
    }
    const check = await checkServiceToken(token, secret, options)
    expect(check).toEqual(reason === '' ? { ok: true, timestamp } : { ok: false, reason })
  })

  test('signs the timestamp as received, including leading zeros', async () => {
    const received = `0${timestamp}`
    const madeOf = (text: string) => base64(`${received}.${createHmac('sha256', secret).update(text).digest('hex')}`)
    expect(await checkServiceToken(madeOf(received), secret, { now })).toEqual({ ok: true, timestamp })
    const reformatted = await checkServiceToken(madeOf(String(timestamp)), secret, { now })
    expect(reformatted).toEqual({ ok: false, reason: 'wrong_signature' })
  })

  test('accepts every secret of a list, and no other', async () => {
    expect(await checkServiceToken(token, ['other', secret], { now })).toEqual({ ok: true, timestamp })
    expect(await checkServiceToken(token, ['other', 'older'], { now })).toEqual({
      ok: false,
      reason: 'wrong_signature',
    })
  })

  test.each([
    ['signing secret must be a non-empty string, and is undefined', undefined],
    ['signing secret must be a non-empty string, and is undefined', [undefined as never]],
    ['signing secret must be a non-empty string, and is empty', ''],
    ['signing secret must be a non-empty string, and is empty', [secret, '']],
    ['signing secret must be a non-empty string, and is of the type object', null as never],
    ['list of signing secrets is empty', []],
  ])('throws, as verifyServiceToken does when it is created, that the %s, if it is %j', async (reason, none) => {
    const error = new TypeError(`the ${reason}: is its setting missing?`)
    await expect(checkServiceToken(token, none, { now })).rejects.toThrow(error)
    expect(() => verifyServiceToken(none)).toThrow(error)
  })

  // Decoders of Base64 skip characters outside the alphabet, and read a second alphabet.
  const odd = fc.oneof(
    fc.constantFrom('', '\n', ' ', '=', '-', '_', 'A'),
    fc.string({ unit: anyCharacter, maxLength: 3 }),
  )
  const withOdd = (text: string) =>
    fc
      .tuple(fc.nat(text.length), fc.nat(1), odd)
      .map(([index, replaced, more]) => text.slice(0, index) + more + text.slice(index + replaced))
      .filter((changed) => changed !== text)

  test('rejects a token that is not the Base64 of digits, a dot and the signature, for any bytes', async () => {
    const signed = withBytes(String(timestamp)).map((time) => `${time}.${sign(time)}`)
    await fc.assert(
      fc.asyncProperty(fc.oneof(signed, withBytes(`${timestamp}.${signature}`)), async (text) => {
        const [, time = '', received] = /^([0-9]{1,15})\.([0-9a-f]{64})$/.exec(text) ?? []
        const isValid = received === sign(time) && Math.abs(Number(time) - timestamp) <= 300
        const check = await checkServiceToken(base64(text), secret, { now })
        const isMalformed = !check.ok && check.reason === 'malformed'
        expect([text, check.ok, isMalformed]).toEqual([text, isValid, received === undefined])
      }),
      { seed: 1, numRuns: 500 },
    )
  })

  test('rejects, and never throws for, a token with other characters, any text and any list', async () => {
    const anything = fc.oneof(
      withOdd(token),
      fc.string({ unit: anyCharacter }),
      fc.base64String(),
      fc.array(fc.string(), { maxLength: 2 }),
    )
    await fc.assert(
      fc.asyncProperty(anything, async (value) =>
        expect((await checkServiceToken(value, secret, { now })).ok).toBe(false),
      ),
      { seed: 1, numRuns: 1_000 },
    )
  })
})

test('verifyServiceToken passes signed requests on and answers 401 with the reason to others, on a plain node:http server', async () => {
  const verify = verifyServiceToken(secret)
  const server = createServer((request, response) => void verify(request, response, () => response.end('welcome')))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  try {
    const signed = await fetch(url, { headers: { [SERVICE_TOKEN_HEADER]: await createServiceToken(secret) } })
    expect([signed.status, await signed.text()]).toEqual([200, 'welcome'])
    const unsigned = await fetch(url)
    expect(unsigned.status).toBe(401)
    expect(unsigned.headers.get('content-type')).toBe('application/json')
    const message = 'The request has no X-Service-Token header'
    expect(await unsigned.json()).toEqual({ error: { code: 'invalid_service_token', reason: 'missing', message } })
    const doubled = new Headers({ 'x-service-token': await createServiceToken(secret) })
    doubled.append('x-service-token', await createServiceToken(secret))
    expect(await (await fetch(url, { headers: doubled })).json()).toMatchObject({ error: { reason: 'malformed' } })
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

describe('checkServiceSignature', () => {
  const deliveryId = '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'
  const body = '{"order_id":"Ä-1"}'
  const mac = createHmac('sha256', secret).update(`${deliveryId}.${timestamp}.${body}`)
  const signed = `v1,${mac.digest('base64')}`
  const headers = {
    'x-delivery-id': deliveryId,
    'x-service-timestamp': String(timestamp),
    'x-service-signature': signed,
  }

  test('accepts what createServiceSignature makes, from Node headers and from Headers, and gives the id', async () => {
    const accepted = { ok: true, timestamp, deliveryId }
    expect(await checkServiceSignature(headers, body, secret, { now })).toEqual(accepted)
    expect(await checkServiceSignature(new Headers(headers), Buffer.from(body), secret, { now })).toEqual(accepted)
    expect(await checkServiceSignature(headers, body, ['other', secret], { now })).toEqual(accepted)
  })

  test('accepts all headers that createServiceHeaders makes, which has the token, too', async () => {
    const made = await createServiceHeaders(secret, { deliveryId, attempt: 2, body }, { now })
    expect(await checkServiceSignature(new Headers(made), body, secret, { now })).toMatchObject({ ok: true })
    expect(await checkServiceToken(made['X-Service-Token'], secret, { now })).toMatchObject({ ok: true })
    expect(made['X-Delivery-Attempt']).toBe('2')
    const unsigned = await createServiceHeaders(null, { deliveryId, body }, { now })
    expect(Object.keys(unsigned)).toEqual(['X-Delivery-Id', 'X-Delivery-Attempt', 'X-Service-Timestamp'])
  })

  test('is that of Standard Webhooks', async () => {
    expect(await createServiceSignature(secret, { deliveryId, timestamp, body })).toBe(signed)
    const several = { ...headers, 'x-service-signature': `v1,${'A'.repeat(43)}= ${signed}` }
    expect(await checkServiceSignature(several, body, secret, { now })).toMatchObject({ ok: true })
  })

  test.each<[string, Record<string, string | string[] | undefined>, string]>([
    ['has no signature', { 'x-service-signature': undefined }, 'missing'],
    ['has no id', { 'x-delivery-id': '' }, 'missing'],
    ['has two signatures', { 'x-service-signature': [signed, signed] }, 'repeated'],
    ['has a time that is no number', { 'x-service-timestamp': '1e9' }, 'malformed'],
    ['has an id with a dot', { 'x-delivery-id': `${deliveryId}.1` }, 'malformed'],
    ['has another form of signature', { 'x-service-signature': signed.slice(3) }, 'malformed'],
    ['has a million characters', { 'x-service-signature': `v1,${'A'.repeat(1_000_000)}` }, 'malformed'],
    ['is of another time', { 'x-service-timestamp': String(timestamp + 1) }, 'wrong_signature'],
    ['is of another id', { 'x-delivery-id': deliveryId.replace('0', '1') }, 'wrong_signature'],
    ['has a version that we do not know', { 'x-service-signature': signed.replace('v1', 'v2') }, 'wrong_signature'],
  ])('rejects a request that %s', async (_, change, reason) => {
    expect(await checkServiceSignature({ ...headers, ...change }, body, secret, { now })).toEqual({ ok: false, reason })
  })

  test('rejects another body, another secret and another hour', async () => {
    const wrong = { ok: false, reason: 'wrong_signature' }
    for (const other of [`${body} `, JSON.parse(body), {}, undefined, null, 7]) {
      expect(await checkServiceSignature(headers, other as string, secret, { now })).toEqual(wrong)
    }
    const bytes = new TextEncoder().encode(body).buffer
    expect(await checkServiceSignature(headers, bytes, secret, { now })).toMatchObject({ ok: true })
    expect(await checkServiceSignature(headers, body, 'other', { now })).toEqual(wrong)
    expect(await checkServiceSignature(headers, body, secret)).toEqual({ ok: false, reason: 'too_old' })
    await expect(checkServiceSignature(headers, body, '')).rejects.toThrow(TypeError)
    await expect(checkServiceToken(token, secret, { toleranceSeconds: NaN })).rejects.toThrow(TypeError)
    expect(() => verifyServiceToken(secret, { toleranceSeconds: NaN })).toThrow(TypeError)
  })
})

test('createDeliveryMemory tells an id that was seen from a new one, until it is forgotten or too many others came', () => {
  const { alreadySeen, forget } = createDeliveryMemory({ maxIds: 2 })
  expect(['a', 'b', 'a', 'c', 'b', 'a'].map(alreadySeen)).toEqual([false, false, true, false, true, false])
  forget('a')
  expect(['a', 'a'].map(alreadySeen)).toEqual([false, true])
})

test('says on a runtime without WebCrypto what it needs', async () => {
  const original = Object.getOwnPropertyDescriptor(globalThis, 'crypto')!
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true })
  try {
    expect(() => verifyServiceToken(secret)).toThrow('Node 20 or newer')
    await expect(checkServiceToken(token, secret)).rejects.toThrow(
      "globalThis.crypto = require('node:crypto').webcrypto",
    )
  } finally {
    Object.defineProperty(globalThis, 'crypto', original)
  }
})

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64')
}
