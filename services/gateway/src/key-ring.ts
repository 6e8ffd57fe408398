import { timingSafeEqual } from 'node:crypto'
import {
  type Database,
  findPrincipals,
  hashApiKey,
  isStatementError,
  type Principal,
  listenForKeyChanges,
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
  close(): Promise<void>
}

/**
 * How long a key is believed without looking again. With the second and more that a look-up may take, a key that was
 * revoked stops within the 5 s of design 5, also when nobody tells.
 */
const KNOWN_MS = 3_000
/** How long a key is taken for unknown, while this process hears of new ones; without that, it always looks again. */
const UNKNOWN_MS = 1_000
const MAX_KNOWN = 50_000
/** An attacker who makes keys up pushes out other made-up ones, never known ones. */
const MAX_UNKNOWN = 10_000
const MAX_LOOK_UPS_PER_STATEMENT = 200

interface Known {
  readonly holder: Principal
  readonly lookedUpAt: number
}

/** Caches keys by their public prefix; the secret part is compared, as a hash and in constant time, on every request. */
export function createKeyRing({ db, now = () => performance.now(), onLookUp = () => {} }: KeyRingOptions): KeyRing {
  const known = new LRUCache<string, Known>({ max: MAX_KNOWN })
  const unknown = new LRUCache<string, number>({ max: MAX_UNKNOWN })
  const underWay = new Map<string, Promise<Principal | null>>()
  // Counts the changes heard, so that a look-up that began before one is not believed after it.
  let changes = 0

  const changesHeard = listenForKeyChanges(db, (changed) => {
    changes += 1
    if (changed?.startsWith('wfk_')) {
      known.delete(changed)
      unknown.delete(changed)
    } else {
      known.clear()
      unknown.clear()
    }
  })

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
    const changesBefore = changes
    try {
      const holder = await read(prefix)
      if (changes === changesBefore) {
        if (holder) known.set(prefix, { holder, lookedUpAt })
        else if (changesHeard.isListening) unknown.set(prefix, lookedUpAt)
      }
      return holder
    } finally {
      underWay.delete(prefix)
    }
  }

  const find = (prefix: string): Principal | null | Promise<Principal | null> => {
    const entry = known.get(prefix)
    if (entry && now() - entry.lookedUpAt < KNOWN_MS) return entry.holder
    const unknownSince = unknown.get(prefix)
    if (unknownSince !== undefined && now() - unknownSince < UNKNOWN_MS) return null
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
    close: () => changesHeard.close(),
  }
}

function isValid({ isRevoked, expiresAt }: Principal): boolean {
  return !isRevoked && (expiresAt === null || expiresAt.getTime() > Date.now())
}
