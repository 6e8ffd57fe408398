import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { decodeSessionMessage } from './decode-session-message.ts'

const sessionId = '0190f6a4-5f4e-7cc2-9d4a-5b8f3a3b2c1d'
const body = JSON.stringify({ session_id: sessionId })

describe('decodeSessionMessage', () => {
  test.each([undefined, null, '', 'workflow.session.v1'])('reads a message of type %j', (type) => {
    expect(decodeSessionMessage(body, type)).toEqual({ message: { session_id: sessionId } })
  })

  test('gives the session id in lower case', () => {
    expect(decodeSessionMessage(body.toUpperCase().replace('SESSION_ID', 'session_id'), undefined)).toEqual({
      message: { session_id: sessionId },
    })
  })

  test.each([
    ['workflow.session.v2', body, 'unknown_type'],
    [7, body, 'unknown_type'],
    [undefined, '', 'not_json'],
    [undefined, '{"session_id":', 'not_json'],
    [undefined, '\u0000\u0001', 'not_json'],
    [undefined, 'null', 'wrong_shape'],
    [undefined, '[]', 'wrong_shape'],
    [undefined, '{}', 'wrong_shape'],
    [undefined, '{"session_id":7}', 'wrong_shape'],
    [undefined, '{"session_id":"seven"}', 'wrong_shape'],
    [undefined, `{"session_id":"${sessionId}","more":1}`, 'wrong_shape'],
  ])('type %j with body %j is %s', (type, text, reason) => {
    expect(decodeSessionMessage(text, type)).toMatchObject({ error: { reason } })
  })

  test('throws for no message, and reads those with exactly one valid session id', () => {
    const sessionIdValue = fc.oneof(
      fc.uuid(),
      fc.uuid().map((id) => id.toUpperCase()),
      fc.jsonValue(),
    )
    const bodyText = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.record({ session_id: sessionIdValue }).map((value) => JSON.stringify(value)),
      fc.record({ session_id: fc.uuid(), more: fc.jsonValue() }).map((value) => JSON.stringify(value)),
    )
    const messageType = fc.oneof(fc.constantFrom(undefined, null, '', 'workflow.session.v1'), fc.anything())
    fc.assert(
      fc.property(bodyText, messageType, (text, type) => {
        const decoded = decodeSessionMessage(text, type)
        const isKnownType = ['', null, undefined, 'workflow.session.v1'].includes(type as string)
        expect('message' in decoded).toBe(isKnownType && isSessionMessage(text))
        const { reason, detail } = 'error' in decoded ? decoded.error : { reason: null, detail: '' }
        expect([null, 'not_json', 'wrong_shape', 'unknown_type']).toContain(reason)
        expect(detail.length).toBeLessThan(500)
      }),
      { seed: 1, numRuns: 500 },
    )
  })
})

/** Whether the text is a message as the generators above write them. */
function isSessionMessage(text: string): boolean {
  return /^\{"session_id":"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"\}$/i.test(text)
}
