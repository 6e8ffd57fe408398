import { type Database, touchApiKeys } from '@workflow-service/database'

/** Records when API keys were last used. */
export interface ApiKeyUsage {
  record(apiKeyId: string): void
  /** Writes the uses recorded so far. If that fails, they are written with the next ones. */
  write(): Promise<void>
}

/** Collects uses, to be written in one statement instead of one write per request. */
export function createApiKeyUsage(db: Pick<Database, 'pool'>): ApiKeyUsage {
  let pending = new Map<string, Date>()
  return {
    record: (apiKeyId) => pending.set(apiKeyId, new Date()),
    write: async () => {
      if (pending.size === 0) return
      const uses = pending
      pending = new Map()
      try {
        await touchApiKeys(db, uses)
      } catch (error) {
        pending = new Map([...uses, ...pending])
        throw error
      }
    },
  }
}
