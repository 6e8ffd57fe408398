import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { decodeSessionMessage } from './decode-session-message.ts'

const sessionId = '0190f6a4-5f4e-7cc2-9d4a-5b8f3a3b2c1d'
const body = JSON.stringify({ session_id: sessionId })

describe('decodeSessionMessage', () => {
  test.each([undefined, null, '', 'workflow.session.v1'])('reads a message of type %j', (type) => {
    expect(decodeSessionMessage(body, type)).toEqual({ sessionIds: [sessionId] })
  })

  test('gives the session id in lower case', () => {
    expect(decodeSessionMessage(body.toUpperCase().replace('SESSION_ID', 'session_id'), undefined)).toEqual({
      sessionIds: [sessionId],
    })
  })

  test('reads a message of several sessions', () => {
    const other = sessionId.replace('0190', '0191')
    const several = JSON.stringify({ session_ids: [sessionId, other.toUpperCase()] })
    expect(decodeSessionMessage(several, 'workflow.session.v2')).toEqual({ sessionIds: [sessionId, other] })
  })

  test.each([
    ['workflow.session.v3', body, 'unknown_type'],
    ['workflow.session.v2', body, 'wrong_shape'],
    ['workflow.session.v2', '{"session_ids":[]}', 'wrong_shape'],
    ['workflow.session.v2', '{"session_ids":["seven"]}', 'wrong_shape'],
    ['workflow.session.v2', JSON.stringify({ session_ids: Array(129).fill(sessionId) }), 'wrong_shape'],
    ['workflow.session.v1', `{"session_ids":["${sessionId}"]}`, 'wrong_shape'],
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
    const character = fc.oneof(
      fc.constantFrom('{', '}', '"', '\\', ' ', '\n', '\0', '\ufeff', '\u00a0', '\ud800', 'A', 'g', '０'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    )
    const withCharacter = (text: string) =>
      fc
        .tuple(fc.nat(text.length), fc.nat(1), character)
        .map(([index, replaced, more]) => text.slice(0, index) + more + text.slice(index + replaced))
    const sessionIdValue = fc.oneof(fc.uuid(), fc.uuid().chain(withCharacter), fc.jsonValue({ maxDepth: 1 }))
    const bodyText = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json({ maxDepth: 1 }),
      sessionIdValue.map((id) => JSON.stringify({ session_id: id })),
      withCharacter(body),
    )
    const knownType = fc.constantFrom(undefined, null, '', 'workflow.session.v1')
    const messageType = fc.oneof(
      { weight: 4, arbitrary: knownType },
      withCharacter('workflow.session.v1'),
      fc.constantFrom<unknown>(0, false, [], {}, Symbol('type'), 1n, new Date(0)),
    )
    fc.assert(
      fc.property(bodyText, messageType, (text, type) => {
        const decoded = decodeSessionMessage(text, type)
        const isKnownType = ['', null, undefined, 'workflow.session.v1'].includes(type as string)
        const id = isKnownType ? readSessionId(text) : undefined
        expect('sessionIds' in decoded ? decoded.sessionIds : undefined).toEqual(id && [id.toLowerCase()])
        const { reason, detail } = 'error' in decoded ? decoded.error : { reason: null, detail: '' }
        expect([null, 'not_json', 'wrong_shape', 'unknown_type']).toContain(reason)
        expect(detail.length).toBeLessThan(500)
      }),
      { seed: 1, numRuns: 300 },
    )
  })
})

/**
 * The session id of a text that is a message as the generators above write them, with white space of JSON between its
 * parts.
 */
function readSessionId(text: string): string | undefined {
  return /^\s*\{\s*"session_id"\s*:\s*"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"\s*\}\s*$/i.exec(
    text.replaceAll(/[^ \t\n\r\x21-\x7e]/g, '?'),
  )?.[1]
}
