import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, type Database } from '@workflow-service/database'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { createLogger } from '@workflow-service/service-kit'
import { createTestDatabase } from '@workflow-service/testkit'

/** A migrated database, a dispatcher that may send to this machine, and a folder for files. */
export interface Setting {
  readonly db: Database
  /** What `wf` needs. */
  readonly env: { readonly DATABASE_URL: string; readonly DISPATCHER_URL: string; readonly [name: string]: string }
  /** Writes a file and returns its path. */
  file(name: string, content: string | object): Promise<string>
  /** Removes everything that was applied. */
  clear(): Promise<void>
  close(): Promise<void>
}

export async function createSetting(): Promise<Setting> {
  const testDatabase = await createTestDatabase()
  const db = createDatabase({ url: testDatabase.url, applicationName: 'test' })
  const secrets = {
    INTERNAL_API_TOKEN: randomBytes(32).toString('hex'),
    SECRETS_KEY: randomBytes(32).toString('base64'),
  }
  const settings = {
    DATABASE_URL: testDatabase.url,
    HOST: '127.0.0.1',
    PORT: '0',
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    ...secrets,
  }
  const logger = createLogger({ service: 'dispatcher', level: 'silent' })
  const dispatcher = await startDispatcher(readDispatcherConfig(settings), { logger })
  const folder = await mkdtemp(join(tmpdir(), 'workflow-service-cli-'))
  return {
    db,
    env: { DATABASE_URL: testDatabase.url, DISPATCHER_URL: dispatcher.url, ...secrets },
    file: async (name, content) => {
      const path = join(folder, name)
      await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
      return path
    },
    clear: async () => {
      await db.pool.query('DELETE FROM organizations')
    },
    close: async () => {
      await dispatcher.stop()
      await db.close()
      await testDatabase.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
