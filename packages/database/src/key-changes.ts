import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Notification, PoolClient } from 'pg'
import type { Database } from './client.ts'

/** A subscription to changes of API keys and their organizations. */
export interface KeyChanges {
  /** Whether changes are heard at this moment. */
  readonly isListening: boolean
  close(): Promise<void>
}

const RETRY_MS = 500

/**
 * Hears at once which keys changed: a key's prefix, or an organization's id. It holds one connection of the pool, and takes
 * another when that breaks. `onChange(null)` says that changes may have been missed. A speed-up, never a guard: a
 * connection can be dead for a while before anybody notices.
 */
export function listenForKeyChanges(
  db: Pick<Database, 'pool'>,
  onChange: (changed: string | null) => void,
): KeyChanges {
  const closing = new AbortController()
  const state = { isListening: false }
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await listen(db, onChange, state, closing.signal)
      state.isListening = false
      if (!closing.signal.aborted) await pause(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  }
  const running = run()
  return {
    get isListening() {
      return state.isListening
    },
    close: async () => {
      closing.abort()
      await running
    },
  }
}

async function listen(
  db: Pick<Database, 'pool'>,
  onChange: (changed: string | null) => void,
  state: { isListening: boolean },
  closing: AbortSignal,
): Promise<void> {
  let client: PoolClient | undefined
  try {
    client = await db.pool.connect()
    // An `error` rejects the wait, and so does the end of the subscription.
    const ended = once(client, 'end', { signal: closing })
    ended.catch(() => {})
    client.on('notification', ({ payload }: Notification) => onChange(payload ?? null))
    await client.query('LISTEN api_keys')
    onChange(null)
    state.isListening = true
    await ended
  } catch {
    // Whatever broke, the connection is thrown away.
  } finally {
    client?.release(true)
  }
}
