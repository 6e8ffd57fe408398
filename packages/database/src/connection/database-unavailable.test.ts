import { describe, expect, test } from '@jest/globals'
import { DatabaseError } from 'pg'
import { isDatabaseUnavailable } from './database-unavailable.ts'

function sqlError(code: string): DatabaseError {
  return Object.assign(new DatabaseError('said by Postgres', 0, 'error'), { code })
}
const coded = (code: string): Error => Object.assign(new Error('another message'), { code })

test.each([
  ['refuses connections', coded('ECONNREFUSED')],
  ['is tried at several addresses', new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')])],
  ['is shutting down', sqlError('57P01')],
  ['has a full disk', sqlError('53100')],
  ['lost the connection', sqlError('08006')],
  ['took too long for a lock', sqlError('55P03')],
  ['has become a standby', sqlError('25006')],
  ['accepts no connections', sqlError('55000')],
  ['has another password', sqlError('28P01')],
  ['is created again', sqlError('3D000')],
  ['cannot read its disk', sqlError('58030')],
  ['does not answer a query', new Error('Query read timeout')],
  ['does not answer a connection', new Error('timeout exceeded when trying to connect')],
  ['breaks a connection', new Error('Connection terminated unexpectedly')],
  ['is unavailable for Prisma', Object.assign(coded('P1001'), { name: 'PrismaClientKnownRequestError' })],
  [
    'is unavailable below Prisma',
    Object.assign(coded('P2010'), { meta: { driverAdapterError: { cause: { originalCode: '57P01' } } } }),
  ],
  ['is unavailable below another error', new Error('while saving', { cause: coded('ECONNREFUSED') })],
])('an unavailable database %s', (_what, error) => {
  expect(isDatabaseUnavailable(error)).toBe(true)
})

describe('an available database', () => {
  test.each([
    ['finds a name twice', sqlError('23505')],
    ['finds a name twice for Prisma', coded('P2002')],
    ['is not meant', Object.assign(new Error('file'), { code: 'ENOENT' })],
    ['is not meant by a text', 'ECONNREFUSED'],
    ['has no error', undefined],
  ])('%s', (_what, error) => {
    expect(isDatabaseUnavailable(error)).toBe(false)
  })

  test('does not loop over a circle of causes', () => {
    const circle = new Error('circle')
    circle.cause = circle
    expect(isDatabaseUnavailable(circle)).toBe(false)
  })
})
