import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll } from '@jest/globals'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { createLogger, type RunningService } from '@workflow-service/service-kit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { wf } from './wf.ts'

/**
 * Sets up a migrated database, a dispatcher that sends to loopback addresses, and a folder for manifests before the
 * first test of the file, and removes them after the last one.
 */
export function useCliEnvironment() {
  const testDatabase = useTestDatabase()
  const folder = useTestFolder()
  const secrets = {
    INTERNAL_API_TOKEN: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('base64'),
  }
  let dispatcher: RunningService

  beforeAll(async () => {
    const settings = {
      DATABASE_URL: testDatabase.url,
      HOST: '127.0.0.1',
      PORT: '0',
      WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
      // Tests insert runs of fixed dates, which the dispatcher would delete once they are old enough.
      JOURNAL_RETENTION_DAYS: '0',
      RUN_RETENTION_DAYS: '0',
      SESSION_RETENTION_DAYS: '0',
      DELIVERY_LOG_RETENTION_DAYS: '0',
      ...secrets,
    }
    const logger = createLogger({ service: 'dispatcher', level: 'silent' })
    dispatcher = await startDispatcher(readDispatcherConfig(settings), { logger })
  })
  afterAll(() => dispatcher.stop())

  const environment = {
    get db() {
      return testDatabase.db
    },
    /** The settings of `wf`. */
    get env() {
      return { DATABASE_URL: testDatabase.url, DISPATCHER_URL: dispatcher.url, ...secrets }
    },
    /** Writes a file and returns its path. */
    writeFile: async (name: string, content: string | object) => {
      const path = join(folder, name)
      await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
      return path
    },
    /** Applies a manifest and returns the JSON that `wf apply` printed. */
    apply: async (manifest: object): Promise<unknown> => {
      const input = JSON.stringify(manifest)
      return (await wf(environment.env, ['apply', '-', '--json', '--allow-unknown'], { input })).json()
    },
    /** Deletes all organizations. */
    clear: async () => {
      await testDatabase.db.pool.query('DELETE FROM organizations')
    },
  }
  return environment
}

/** A manifest's webhook source without a secret, whose endpoint is at `url`. */
export function orderIntakeSource(url: string, changes: object = {}): object {
  return {
    name: 'Order intake',
    description: 'Takes orders.',
    endpoint_url: `${url}/orders`,
    example_request_body: { order_id: 'A-1' },
    ...changes,
  }
}
