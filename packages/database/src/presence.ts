import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import type { Database } from './client.ts'

/** A running process that others can see: an advisory lock that the server lets go of when the process dies. */
export interface Presence {
  /** Names the process; new for each. A positive 63-bit number as text. */
  readonly key: string
  /** Whether the lock is held at this moment. */
  readonly isSeen: boolean
  close(): Promise<void>
}

const RETRY_MS = 500

/**
 * Makes this process seen through one connection of the pool, and again after that connection broke. A hint that speeds
 * up noticing a death, never a guard: when the database restarts, the living are not seen for a moment either.
 */
export function announcePresence(db: Pick<Database, 'pool'>): Presence {
  const key = BigInt.asUintN(63, randomBytes(8).readBigUInt64BE()).toString()
  const closing = new AbortController()
  const state = { isSeen: false }
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await hold(db, key, state, closing.signal)
      state.isSeen = false
      if (!closing.signal.aborted) await pause(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  }
  const running = run()
  return {
    key,
    get isSeen() {
      return state.isSeen
    },
    close: async () => {
      closing.abort()
      await running
    },
  }
}

async function hold(
  db: Pick<Database, 'pool'>,
  key: string,
  state: { isSeen: boolean },
  closing: AbortSignal,
): Promise<void> {
  let client: PoolClient | undefined
  try {
    client = await db.pool.connect()
    // An `error` rejects the wait, and so does the end of this process's presence.
    const ended = once(client, 'end', { signal: closing })
    ended.catch(() => {})
    await client.query('SELECT pg_advisory_lock($1)', [key])
    state.isSeen = true
    await ended
  } catch {
    // Whatever broke, the connection is thrown away and the lock with it.
  } finally {
    client?.release(true)
  }
}
