import { timingSafeEqual } from 'node:crypto'
import {
  type Database,
  findPrincipals,
  hashApiKey,
  isStatementError,
  parseApiKey,
  type Principal,
} from '@workflow-service/database'
import { batchCalls } from '@workflow-service/service-kit'
import { LRUCache } from 'lru-cache'

export interface ApiKeyCacheOptions {
  db: Pick<Database, 'pool'>
  /** A monotonic clock in milliseconds; another one in tests. */
  now?: () => number
  /** Called with the number of keys of each look-up in the database. */
  onLookUp?: (count: number) => void
}

/** In-memory cache of API keys and their principals. */
export interface ApiKeyCache {
  /**
   * Returns the principal of a key; null when the key is malformed, unknown, revoked or expired. Synchronous for a cached
   * or malformed key; else a promise that rejects when the database is unavailable.
   */
  findPrincipal(key: string): Principal | null | Promise<Principal | null>
}

/** Together with the at most 2 s of a look-up, a revoked key stops within 5 s (contract README, "Authentication"). */
const LIFETIME_MS = 3_000
const MAX_CACHED_KEYS = 50_000
const MAX_KEYS_PER_STATEMENT = 200

/**
 * Caches keys by their public prefix. The secret part is compared on every request, as a hash and in constant time.
 * Concurrent look-ups of one key are shared, those of different keys go to the database in one statement.
 */
export function createApiKeyCache(options: ApiKeyCacheOptions): ApiKeyCache {
  const { db, now = () => performance.now(), onLookUp = () => {} } = options
  const cache = new LRUCache<string, { readonly principal: Principal; readonly readMs: number }>({
    max: MAX_CACHED_KEYS,
  })
  const lookUpsUnderWay = new Map<string, Promise<Principal | null>>()

  const readPrincipal = batchCalls(
    async (prefixes: string[]) => {
      onLookUp(prefixes.length)
      const principals = await findPrincipals(db, prefixes)
      const byPrefix = new Map(principals.map((principal) => [principal.prefix, principal]))
      return prefixes.map((prefix) => byPrefix.get(prefix) ?? null)
    },
    { maxSize: MAX_KEYS_PER_STATEMENT, concurrency: 2, isItemError: isStatementError },
  )

  const lookUp = async (prefix: string): Promise<Principal | null> => {
    // The age counts from before the look-up: what it returns may have changed while it was under way.
    const readMs = now()
    try {
      const principal = await readPrincipal(prefix)
      if (principal) cache.set(prefix, { principal, readMs })
      return principal
    } finally {
      lookUpsUnderWay.delete(prefix)
    }
  }

  const find = (prefix: string): Principal | Promise<Principal | null> => {
    const cached = cache.get(prefix)
    if (cached && now() - cached.readMs < LIFETIME_MS) return cached.principal
    const underWay = lookUpsUnderWay.get(prefix) ?? lookUp(prefix)
    lookUpsUnderWay.set(prefix, underWay)
    return underWay
  }

  return {
    findPrincipal: (key) => {
      const parsed = parseApiKey(key)
      if (!parsed) return null
      const keySha256 = hashApiKey(key)
      const check = (principal: Principal | null): Principal | null =>
        principal && timingSafeEqual(principal.keySha256, keySha256) && isValid(principal) ? principal : null
      const found = find(parsed.prefix)
      return found instanceof Promise ? found.then(check) : check(found)
    },
  }
}

function isValid({ isRevoked, expiresAt }: Principal): boolean {
  return !isRevoked && (expiresAt === null || expiresAt.getTime() > Date.now())
}
