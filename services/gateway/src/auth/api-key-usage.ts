import { type Database, touchApiKeys } from '@workflow-service/database'
import { describeError, type Logger, repeat } from '@workflow-service/service-kit'

/** Records when API keys were last used. */
export interface ApiKeyUsage {
  record(apiKeyId: string): void
  /** Writes the uses recorded so far. Never rejects. */
  close(): Promise<void>
}

const WRITE_INTERVAL_MS = 30_000
const TASK = 'write when API keys were last used'

/** Collects uses and writes them every 30 seconds in one statement, instead of one write per request. */
export function createApiKeyUsage({ db, logger }: { db: Pick<Database, 'pool'>; logger: Logger }): ApiKeyUsage {
  let pending = new Map<string, Date>()
  const write = async (): Promise<void> => {
    if (pending.size === 0) return
    const uses = pending
    pending = new Map()
    try {
      await touchApiKeys(db, uses)
    } catch (error) {
      pending = new Map([...uses, ...pending])
      throw error
    }
  }
  const writing = repeat({
    name: TASK,
    intervalMs: WRITE_INTERVAL_MS,
    firstDelayMs: WRITE_INTERVAL_MS,
    logger,
    run: write,
  })
  return {
    record: (apiKeyId) => pending.set(apiKeyId, new Date()),
    close: async () => {
      await writing.stop()
      await write().catch((error: unknown) => logger.warn({ task: TASK, error: describeError(error) }, 'task.failed'))
    },
  }
}
