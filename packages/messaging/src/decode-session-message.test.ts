import { describe, expect, test } from '@jest/globals'
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
    [undefined, 'null', 'wrong_shape'],
    [undefined, '{"session_id":"seven"}', 'wrong_shape'],
    [undefined, `{"session_id":"${sessionId}","more":1}`, 'wrong_shape'],
  ])('type %j with body %j is %s', (type, text, reason) => {
    expect(decodeSessionMessage(text, type)).toMatchObject({ error: { reason } })
  })
})
