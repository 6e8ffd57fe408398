import { type Db, touchApiKeys } from '@workflow-service/database'

/** Collects uses, to be written in one statement instead of one write per request. */
export function createApiKeyUsage(db: Db) {
  const pending = new Map<string, Date>()
  return {
    record: (apiKeyId: string) => pending.set(apiKeyId, new Date()),
    /** Writes the uses recorded so far. */
    write: async () => {
      const uses = new Map(pending)
      pending.clear()
      if (uses.size > 0) await touchApiKeys(db, uses)
    },
  }
}
