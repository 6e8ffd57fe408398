import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { readAppConfig } from '../../src/config.ts'
import { type DataApp, startDataApp } from './data-fixtures.ts'
import { startTestApp, type TestApp, testEnv } from './test-app.ts'

export * from './data-fixtures.ts'
export * from './test-app.ts'

/**
 * Sets up an application for the test file, or for the `describe` block that calls it: started before its first test,
 * stopped after its last one. `env` may be a function, for values that exist only after earlier hooks.
 */
export function useTestApp(env: Record<string, string> | (() => Record<string, string>) = {}): TestApp {
  const app = {} as TestApp
  const folder = mkdtempSync(join(tmpdir(), 'app-test-'))
  // Registered before the hooks of useTestDatabase, so that it runs before the database is dropped.
  afterAll(async () => {
    await app.stack?.disposeAsync()
    rmSync(folder, { recursive: true })
  })
  const database = useTestDatabase({ maxConnections: 5 })
  beforeAll(async () => {
    const config = readAppConfig({ ...testEnv(database.url), ...(typeof env === 'function' ? env() : env) })
    Object.assign(app, await startTestApp(database.db, { ...config, consoleFolder: join(folder, 'dist') }))
  })
  return app
}

/** Sets up an application with a dispatcher and a customer's endpoint. The object is filled before the first test. */
export function useDataApp(
  options: { hasMaintenance?: boolean; env?: Parameters<typeof useTestApp>[0] } = {},
): DataApp {
  const app = useTestApp(options.env)
  const data = { app } as DataApp
  beforeAll(async () => void Object.assign(data, await startDataApp(app, options.hasMaintenance)))
  beforeEach(() => data.endpoint.reset())
  return data
}
