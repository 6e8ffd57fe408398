import { type Db, touchApiKeys } from '@workflow-service/database'

/** Collects uses, to be written in one statement instead of one write per request. */
export function createApiKeyUsage(db: Db) {
  let pending = new Map<string, Date>()
  return {
    record: (apiKeyId: string) => pending.set(apiKeyId, new Date()),
    /** Writes the uses recorded so far. If that fails, they are written with the next ones. */
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
