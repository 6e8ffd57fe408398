import { timingSafeEqual } from 'node:crypto'
import {
  type Db,
  findPrincipals,
  hashApiKey,
  isStatementError,
  prefixOfApiKey,
  type Principal,
} from '@workflow-service/database'
import { batchCalls } from '@workflow-service/service-kit'
import { LRUCache } from 'lru-cache'

export interface ApiKeyCacheOptions {
  db: Db
  /** A monotonic clock in milliseconds; another one in tests. */
  now?: () => number
  /** Called with the number of keys of each look-up in the database. */
  onLookUp?: (count: number) => void
}

/** In-memory cache of API keys and their principals. */
export type ApiKeyCache = ReturnType<typeof createApiKeyCache>

/** A key that only the database knows. */
export interface ApiKeyLookUp {
  /**
   * Whether this process knows that the look-up is no guess: the key was valid in the last 10 minutes, or the same
   * look-up is under way for another request.
   */
  readonly isExpected: boolean
  /** Looks the key up. Rejects when the database is unavailable. */
  readonly run: () => Promise<Principal | null>
}

interface CachedPrincipal {
  readonly principal: Principal
  readonly readMs: number
}

/** Together with the at most 2 s of a look-up, a revoked key stops within 5 s (contract README, "Authentication"). */
const LIFETIME_MS = 3_000
/** How long after it was read an entry shows that a key was valid. */
const EXPECTED_MS = 600_000
const MAX_CACHED_KEYS = 50_000
const MAX_KEYS_PER_STATEMENT = 200

/**
 * Caches keys by their public prefix. The secret part is compared on every request, as a hash and in constant time.
 * Concurrent look-ups of one key are shared, those of different keys go to the database in one statement.
 */
export function createApiKeyCache(options: ApiKeyCacheOptions) {
  const { db, now = () => performance.now(), onLookUp = () => {} } = options
  // With `max`, the cache reserves 1 MiB at once.
  const cache = new LRUCache<string, CachedPrincipal>({ maxSize: MAX_CACHED_KEYS, sizeCalculation: () => 1 })
  const lookUpsUnderWay = new Map<string, Promise<CachedPrincipal | null>>()

  const readPrincipal = batchCalls(
    async (prefixes: string[]) => {
      onLookUp(prefixes.length)
      const principals = await findPrincipals(db, prefixes)
      const byPrefix = new Map(principals.map((principal) => [principal.prefix, principal]))
      return prefixes.map((prefix) => byPrefix.get(prefix) ?? null)
    },
    { maxSize: MAX_KEYS_PER_STATEMENT, concurrency: 2, isItemError: isStatementError },
  )

  const read = async (prefix: string): Promise<CachedPrincipal | null> => {
    // The age counts from before the look-up: what it returns may have changed while it was under way.
    const readMs = now()
    try {
      const principal = await readPrincipal(prefix)
      const cached = principal && { principal, readMs }
      if (cached) cache.set(prefix, cached)
      return cached
    } finally {
      lookUpsUnderWay.delete(prefix)
    }
  }
  const lookUp = (prefix: string): Promise<CachedPrincipal | null> => {
    const underWay = lookUpsUnderWay.get(prefix) ?? read(prefix)
    lookUpsUnderWay.set(prefix, underWay)
    return underWay
  }

  return {
    /**
     * Returns the principal of a key; null when the key is malformed, unknown, revoked or expired; a look-up if it is
     * not cached.
     */
    find: (key: string) => {
      const prefix = prefixOfApiKey(key)
      if (prefix === undefined) return null
      const keySha256 = hashApiKey(key)
      const hasKey = ({ principal }: CachedPrincipal): boolean => timingSafeEqual(principal.keySha256, keySha256)
      const check = (cached: CachedPrincipal | null): Principal | null =>
        cached && hasKey(cached) && isValid(cached, now()) ? cached.principal : null
      const cached = cache.get(prefix)
      const ageMs = cached ? now() - cached.readMs : Number.POSITIVE_INFINITY
      if (cached && ageMs < LIFETIME_MS) return check(cached)
      const wasValid = cached !== undefined && ageMs < EXPECTED_MS && hasKey(cached) && isValid(cached, cached.readMs)
      return {
        isExpected: wasValid || lookUpsUnderWay.has(prefix),
        run: () => lookUp(prefix).then(check),
      }
    },
  }
}

/** The gateway's own clock only measures the time since the look-up: its time of day may be wrong. */
function isValid({ principal: { isRevoked, expiresInMs }, readMs }: CachedPrincipal, nowMs: number): boolean {
  return !isRevoked && (expiresInMs === null || nowMs - readMs < expiresInMs)
}
