import { type Database, touchApiKeys } from '@workflow-service/database'
import { describeError, type Logger } from '@workflow-service/service-kit'

/** Notes when keys were used, without a write for each request. */
export interface KeyUses {
  note(apiKeyId: string): void
  /** Writes what was gathered. Never rejects. */
  flush(): Promise<void>
  close(): Promise<void>
}

const FLUSH_INTERVAL_MS = 30_000

/** Gathers uses and writes them together: `last_used_at` is at most half a minute behind. */
export function createKeyUses({ db, logger }: { db: Pick<Database, 'pool'>; logger: Logger }): KeyUses {
  let gathered = new Map<string, Date>()
  let flushing: Promise<void> = Promise.resolve()
  const write = async (): Promise<void> => {
    if (gathered.size === 0) return
    const uses = gathered
    gathered = new Map()
    try {
      await touchApiKeys(db, uses)
    } catch (error) {
      for (const [id, usedAt] of uses) if (!gathered.has(id)) gathered.set(id, usedAt)
      logger.warn({ error: describeError(error) }, 'could not write when keys were last used')
    }
  }
  const flush = (): Promise<void> => (flushing = flushing.then(write))
  const timer = setInterval(() => void flush(), FLUSH_INTERVAL_MS)
  timer.unref()
  return {
    note: (apiKeyId) => gathered.set(apiKeyId, new Date()),
    flush,
    close: async () => {
      clearInterval(timer)
      await flush()
    },
  }
}
