import { timingSafeEqual } from 'node:crypto'
import {
  type Database,
  findPrincipals,
  hashApiKey,
  isStatementError,
  type Principal,
  parseApiKey,
} from '@workflow-service/database'
import { batchCalls } from '@workflow-service/service-kit'
import { LRUCache } from 'lru-cache'

export interface KeyRingOptions {
  db: Pick<Database, 'pool'>
  /** Milliseconds; for tests. */
  now?: () => number
  onLookUp?: (prefixes: number) => void
}

/** The keys that this process has seen lately. */
export interface KeyRing {
  /**
   * Whose key it is; null when it is malformed, unknown, revoked or expired. A malformed one costs no look-up.
   * Rejects while the database is away and the answer is not known any more.
   */
  holderOf(key: string): Principal | null | Promise<Principal | null>
}

/**
 * How long a key is believed without looking again. With the second and more that a look-up may take, a key that was
 * revoked stops within the 5 s of the contract README, "Authentication".
 */
const KNOWN_MS = 3_000
const MAX_KNOWN = 50_000
const MAX_LOOK_UPS_PER_STATEMENT = 200

interface Known {
  readonly holder: Principal
  readonly lookedUpAt: number
}

/** Caches keys by their public prefix; the secret part is compared, as a hash and in constant time, on every request. */
export function createKeyRing({ db, now = () => performance.now(), onLookUp = () => {} }: KeyRingOptions): KeyRing {
  const known = new LRUCache<string, Known>({ max: MAX_KNOWN })
  const underWay = new Map<string, Promise<Principal | null>>()

  const read = batchCalls(
    async (prefixes: string[]) => {
      onLookUp(prefixes.length)
      const holders = new Map((await findPrincipals(db, prefixes)).map((holder) => [holder.prefix, holder]))
      return prefixes.map((prefix) => holders.get(prefix) ?? null)
    },
    { maxSize: MAX_LOOK_UPS_PER_STATEMENT, concurrency: 2, isItemError: isStatementError },
  )

  const lookUp = async (prefix: string): Promise<Principal | null> => {
    const lookedUpAt = now()
    try {
      const holder = await read(prefix)
      if (holder) known.set(prefix, { holder, lookedUpAt })
      else known.delete(prefix)
      return holder
    } finally {
      underWay.delete(prefix)
    }
  }

  const find = (prefix: string): Principal | null | Promise<Principal | null> => {
    const entry = known.get(prefix)
    if (entry && now() - entry.lookedUpAt < KNOWN_MS) return entry.holder
    let looking = underWay.get(prefix)
    if (!looking) {
      looking = lookUp(prefix)
      underWay.set(prefix, looking)
    }
    return looking
  }

  return {
    holderOf: (key) => {
      const parsed = parseApiKey(key)
      if (!parsed) return null
      const keySha256 = hashApiKey(key)
      const check = (holder: Principal | null): Principal | null =>
        holder && timingSafeEqual(holder.keySha256, keySha256) && isValid(holder) ? holder : null
      const found = find(parsed.prefix)
      return found instanceof Promise ? found.then(check) : check(found)
    },
  }
}

function isValid({ isRevoked, expiresAt }: Principal): boolean {
  return !isRevoked && (expiresAt === null || expiresAt.getTime() > Date.now())
}
