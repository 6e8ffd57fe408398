import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'

/** How long a connection is kept. */
const IDLE_MS = 2_000
/** In the last part of that time it is not taken: an endpoint that closes it just then must not meet a request. */
const USABLE_SHARE = 0.75
/** Kept connections in all: each is a file descriptor. */
const MAX_IDLE = 500
/** The keys whose behaviour is remembered. */
const MAX_KEYS = 1_000

interface Idle {
  readonly socket: Socket
  readonly address: string
  readonly sinceMs: number
  /** Removes what watches the unused connection. */
  readonly unwatch: () => void
}

/** The connections of a key, the last one at the end. */
interface Kept {
  /** Whether its endpoint leaves unused connections open. */
  isProven: boolean
  readonly idle: Idle[]
}

/**
 * Creates an empty store of connections to endpoints that may carry a further request. It keeps no process running. A
 * request that meets the end of its connection has an unknown outcome, so an endpoint has to prove first that it leaves
 * connections open: one of its connections is kept for all of `idleMs` without being used. When it closes one earlier,
 * or sends something unasked, the proof begins again.
 */
export function createIdleConnections(idleMs = IDLE_MS) {
  const keys = new Map<string, Kept>()
  let count = 0

  return {
    /** Returns a connection of this key to one of these addresses, or undefined. It is the caller's from then on. */
    take(key: string, addresses: ReadonlySet<string>): Socket | undefined {
      const kept = keys.get(key)
      if (!kept?.isProven) return undefined
      const found = kept.idle.findLastIndex(({ address }) => addresses.has(address))
      const [taken] = found === -1 ? [] : kept.idle.splice(found, 1)
      if (taken === undefined) return undefined
      count -= 1
      const { socket, sinceMs, unwatch } = taken
      unwatch()
      const isOpen = isSocketOpen(socket)
      // By the clock, too: a process that was paused has not seen its timers, nor what the peer did.
      if (isOpen && performance.now() - sinceMs < idleMs * USABLE_SHARE) return socket
      if (!isOpen) kept.isProven = false
      socket.destroy()
      return undefined
    },

    /** Keeps a connection after a complete answer with these headers, or returns false: then the caller closes it. */
    keep(key: string, socket: Socket, address: string, headers: IncomingHttpHeaders): boolean {
      const kept = keys.get(key) ?? { isProven: false, idle: [] }
      if (count >= MAX_IDLE || announcedMs(headers) < idleMs || (!kept.isProven && kept.idle.length > 0)) return false
      // Set again, so that the key comes last.
      keys.delete(key)
      keys.set(key, kept)
      forgetOldest()
      const end = (isProven: boolean): void => {
        const index = kept.idle.indexOf(idle)
        if (index === -1) return
        kept.idle.splice(index, 1)
        count -= 1
        kept.isProven = isProven
        socket.destroy()
      }
      const endEarly = (): void => end(false)
      // Not in the timer itself: after a delay of this process, it precedes the end that the peer sent meanwhile.
      const endInTime = (): void => void setImmediate(() => end(isSocketOpen(socket)))
      socket.on('data', endEarly).on('close', endEarly).setTimeout(idleMs, endInTime).unref()
      const unwatch = (): void => {
        socket.off('data', endEarly).off('close', endEarly).setTimeout(0, endInTime).ref()
      }
      const idle: Idle = { socket, address, sinceMs: performance.now(), unwatch }
      kept.idle.push(idle)
      count += 1
      return true
    },

    /** Closes the connections of a key, whose endpoint has ended one that was in use. */
    forget,
  }

  function forget(key: string): void {
    for (const { socket } of keys.get(key)?.idle ?? []) socket.destroy()
    keys.delete(key)
  }

  function forgetOldest(): void {
    for (const key of keys.keys()) {
      if (keys.size <= MAX_KEYS) return
      forget(key)
    }
  }
}

function isSocketOpen({ readable, writable }: Socket): boolean {
  return readable && writable
}

/** Returns for how long the endpoint announces to keep the connection (RFC 2068, section 19.7.1.1), or Infinity. */
function announcedMs(headers: IncomingHttpHeaders): number {
  const seconds = /(?:^|[\s,;])timeout=(\d{1,9})/i.exec(String(headers['keep-alive']))?.[1]
  return seconds === undefined ? Infinity : Number(seconds) * 1_000
}
