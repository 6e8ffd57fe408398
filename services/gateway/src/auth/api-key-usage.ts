import { type Db, touchApiKeys } from '@workflow-service/database'

/** Collects uses, to be written in one statement instead of one write per request. */
export function createApiKeyUsage(db: Db) {
  const pending = new Map<string, number>()
  return {
    record: (apiKeyId: string) => pending.set(apiKeyId, performance.now()),
    /** Writes the uses recorded so far. */
    write: async () => {
      const agesMs = new Map([...pending].map(([id, usedMs]) => [id, performance.now() - usedMs]))
      pending.clear()
      if (agesMs.size > 0) await touchApiKeys(db, agesMs)
    },
  }
}
