import { type Db, touchApiKeys } from '@workflow-service/database'

/** Collects uses, to be written in one statement instead of one write per request. */
export function createApiKeyUsage(db: Db) {
  const pending = new Map<string, number>()
  return {
    record: (apiKeyId: string) => pending.set(apiKeyId, performance.now()),
    /** Writes the uses recorded so far; when that fails, they are written the next time. */
    write: async () => {
      const used = [...pending]
      pending.clear()
      if (used.length === 0) return
      try {
        await touchApiKeys(db, new Map(used.map(([id, usedMs]) => [id, performance.now() - usedMs])))
      } catch (error) {
        // A key may have been used again meanwhile.
        for (const [id, usedMs] of used) if (!pending.has(id)) pending.set(id, usedMs)
        throw error
      }
    },
  }
}
