import { afterAll, beforeAll } from '@jest/globals'
import { createDatabase, type Database, type DatabaseOptions } from '@workflow-service/database'
import { createTestDatabase, type TestDatabase } from './create-test-database.ts'

/**
 * Sets up a migrated database for the test file, or for the `describe` block that calls it: created before its first
 * test, closed and dropped after its last one. Imported as `@workflow-service/testkit/use-test-database`, because
 * `@jest/globals` cannot be loaded outside of Jest and the testkit can.
 */
export function useTestDatabase(options: Pick<DatabaseOptions, 'maxConnections' | 'statementTimeoutMs'> = {}) {
  let created: TestDatabase | undefined
  let opened: Database | undefined
  beforeAll(async () => {
    created = await createTestDatabase()
    opened = createDatabase({ url: created.url, applicationName: 'test', ...options })
  })
  afterAll(async () => {
    await opened?.close()
    await created?.drop()
  })
  return {
    /** Connects as the owner, who is no superuser. */
    get url() {
      return assertCreated(created).url
    },
    get db() {
      return assertCreated(opened)
    },
  }
}

function assertCreated<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('The test database exists only inside of hooks and tests')
  return value
}
