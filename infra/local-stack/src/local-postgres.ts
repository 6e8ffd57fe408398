import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EmbeddedPostgres, EmbeddedPostgresError, startEmbeddedPostgres } from '@workflow-service/dev-servers'
import type { Logger } from '@workflow-service/service-kit'
import { readSavedSettings } from './local-settings.ts'
import { alreadyRunningError, isRunning } from './running-instance.ts'

/** When npm start was killed, its PostgreSQL ends by itself shortly after. The next start waits this long for that. */
const DATA_DIR_TIMEOUT_MS = 15_000
const RETRY_MS = 200

/**
 * Starts PostgreSQL on the data of `localDir`. `isNew`: whether the data folder was created.
 * @throws EmbeddedPostgresError
 * @throws LocalStackError when another local stack runs on this folder.
 */
export async function startLocalPostgres(
  localDir: string,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
): Promise<EmbeddedPostgres & { isNew: boolean }> {
  const dataDir = join(localDir, 'postgres')
  const isNew = !existsSync(dataDir)
  const deadlineMs = performance.now() + DATA_DIR_TIMEOUT_MS
  for (;;) {
    try {
      const server = await startEmbeddedPostgres({ dataDir, log: (line) => logger.info({ line }, 'database.logged') })
      return { ...server, isNew }
    } catch (error) {
      if (!(error instanceof EmbeddedPostgresError) || error.code !== 'data_dir_in_use') throw error
      // Read each time: the one that runs saves them while it starts.
      const savedSettings = await readSavedSettings(localDir)
      if (await isRunning(savedSettings)) throw alreadyRunningError(localDir, savedSettings)
      if (performance.now() >= deadlineMs) throw error
    }
    await sleep(RETRY_MS, undefined, { signal })
  }
}
