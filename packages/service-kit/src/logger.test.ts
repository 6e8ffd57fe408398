import { describe, expect, test } from '@jest/globals'
import { createLogger, describeError } from './logger.ts'

function collect() {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  return { lines, logger: createLogger({ service: 'gateway', level: 'info', destination }) }
}

describe('createLogger', () => {
  test('writes one JSON line per event, with the service and an ISO time', () => {
    const { lines, logger } = collect()
    logger.info({ request_id: 'r1' }, 'request.answered')
    const line = { level: 'info', service: 'gateway', request_id: 'r1', msg: 'request.answered' }
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ ...line, time })
  })

  test.each([
    ['at the top', { signing_secret: 'hunter2' }],
    ['one level down', { headers: { authorization: 'Bearer hunter2' } }],
    ['two levels down', { req: { headers: { 'x-service-token': 'hunter2' } } }],
    ['in a list', { keys: [{ name: 'ci', key: 'hunter2' }] }],
  ])('redacts a secret %s and keeps the other fields', (_where, fields) => {
    const { lines, logger } = collect()
    const before = JSON.stringify(fields)
    logger.info({ ...fields, outcome: 'fine' }, 'delivery.answered')
    expect(lines.join()).not.toContain('hunter2')
    expect(lines[0]).toContain('[hidden]')
    expect(lines[0]).toContain('"outcome":"fine"')
    expect(JSON.stringify(fields)).toBe(before)
  })
})

describe('describeError', () => {
  test('gives name, message and code, and no other property of the error', () => {
    const options = { headers: { authorization: 'hunter2' } }
    const error = Object.assign(new Error('broken'), { code: 'ECONNRESET', options })
    expect(describeError(error)).toMatchObject({ name: 'Error', message: 'broken', code: 'ECONNRESET' })
    expect(JSON.stringify(describeError(error))).not.toContain('hunter2')
  })

  test('describes a value that is not an Error', () => {
    expect(describeError('text')).toEqual({ name: 'NonError', message: 'text' })
  })
})
