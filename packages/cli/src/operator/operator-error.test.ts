import { MigrationBlockedError } from '@workflow-service/database'
import { expect, test } from '@jest/globals'
import { readCliConfig } from './config.ts'
import { toOperatorError } from './operator-error.ts'

test('a migration that a lock holds up is no database that does not answer', () => {
  const cause = Object.assign(new Error('canceling statement due to lock timeout'), { originalCode: '55P03' })
  const config = readCliConfig({ DATABASE_URL: 'postgres://localhost/x' })
  const error = new MigrationBlockedError('The migration waits for process 7.', { cause })
  expect(toOperatorError(error, config)?.message).toBe('The migration waits for process 7.')
})
