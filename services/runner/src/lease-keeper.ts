import { describeError, type Logger } from '@workflow-service/service-kit'
import type { HeldSession, HeldSessions } from './held-sessions.ts'
import type { SessionStore } from './session-store.ts'

/** Keeps this process's leases alive until it is stopped. */
export interface LeaseKeeper {
  stop(): Promise<void>
}

const RETRY_MS = 500

/**
 * Renews all leases together, well before they run out, and reports those that another runner has taken. While the
 * database is away nothing is lost: the epoch guards every write, and nobody else can take a lease either.
 */
export function startLeaseKeeper(options: {
  held: HeldSessions
  store: Pick<SessionStore, 'renew'>
  renewMs: number
  logger: Logger
  onLost: (session: HeldSession) => void
}): LeaseKeeper {
  const { held, store, renewMs, logger, onLost } = options
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  const renew = async (): Promise<number> => {
    const sessions = held.all()
    if (sessions.length === 0) return renewMs
    try {
      const kept = await store.renew(sessions.map(({ lease }) => lease))
      const epochs = new Map(kept.map(({ sessionId, epoch }) => [sessionId, epoch]))
      const current = new Set(held.all())
      for (const session of sessions) {
        const isKept = epochs.get(session.lease.sessionId) === session.lease.epoch
        if (!isKept && !session.isEnding && current.has(session)) onLost(session)
      }
      return renewMs
    } catch (error) {
      logger.warn({ leases: sessions.length, error: describeError(error) }, 'leases could not be renewed')
      return RETRY_MS
    }
  }
  const schedule = (delayMs: number): void => {
    if (isStopped) return
    timer = setTimeout(() => {
      running = renew().then(schedule)
    }, delayMs)
  }
  schedule(renewMs)

  return {
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await running
    },
  }
}
