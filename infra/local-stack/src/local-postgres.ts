import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type EmbeddedPostgres, EmbeddedPostgresError, startEmbeddedPostgres } from '@workflow-service/dev-servers'
import type { Logger } from '@workflow-service/service-kit'
import { alreadyRunning, isRunning } from './running-instance.ts'

/** A server whose parent was killed ends by itself, which takes a moment. */
const TAKE_OVER_MS = 15_000
const INTERVAL_MS = 200

/** Starts PostgreSQL on the folder's data, and tells whether there was any. @throws EmbeddedPostgresError, LocalStackError */
export async function startLocalPostgres(
  localDir: string,
  options: { last: NodeJS.Dict<string>; signal: AbortSignal; logger: Logger },
): Promise<EmbeddedPostgres & { isNew: boolean }> {
  const { last, signal, logger } = options
  const dataDir = join(localDir, 'postgres')
  const isNew = !existsSync(dataDir)
  const deadlineMs = performance.now() + TAKE_OVER_MS
  for (;;) {
    try {
      const server = await startEmbeddedPostgres({ dataDir, log: (line) => logger.info(line) })
      return { ...server, isNew }
    } catch (error) {
      if (!isInUse(error)) throw error
      if (await isRunning(last)) throw alreadyRunning(last)
      if (performance.now() >= deadlineMs) throw error
    }
    await pause(INTERVAL_MS, undefined, { signal })
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof EmbeddedPostgresError && error.code === 'data_dir_in_use'
}
