import { describeError, type Logger } from '@workflow-service/service-kit'
import type { HeldSession, HeldSessions } from './held-sessions.ts'
import type { SessionStore } from './session-store.ts'

/** Keeps this process's leases alive until it is stopped. */
export interface LeaseKeeper {
  /**
   * Renews now if that is overdue, as after a pause of the process or an outage of the database. Sessions are taken only
   * after it: else this process would take its own from itself. Rejects when they cannot be renewed.
   */
  ensureFresh(): Promise<void>
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
  leaseMs: number
  renewMs: number
  logger: Logger
  onLost: (session: HeldSession) => void
  /** A clock that never goes back; another one in tests. */
  now?: () => number
}): LeaseKeeper {
  const { held, store, leaseMs, renewMs, logger, onLost, now = () => performance.now() } = options
  const stopping = new AbortController()
  let renewedMs = now()
  let timer: NodeJS.Timeout | undefined
  let renewing: Promise<void> | undefined

  const renewAll = async (): Promise<void> => {
    const beganMs = now()
    const sessions = held.all()
    if (sessions.length > 0) {
      const kept = await store.renew(sessions.map(({ lease }) => lease))
      const epochs = new Map(kept.map(({ sessionId, epoch }) => [sessionId, epoch]))
      const current = new Set(held.all())
      for (const session of sessions) {
        const isKept = epochs.get(session.lease.sessionId) === session.lease.epoch
        if (!isKept && !session.isEnding && current.has(session)) onLost(session)
      }
    }
    renewedMs = beganMs
  }
  const renew = (): Promise<void> =>
    (renewing ??= renewAll().finally(() => {
      renewing = undefined
    }))

  const schedule = (delayMs: number): void => {
    if (stopping.signal.aborted) return
    timer = setTimeout(() => {
      renew().then(
        () => schedule(renewMs),
        (error: unknown) => {
          logger.warn({ leases: held.size, error: describeError(error) }, 'leases could not be renewed')
          schedule(RETRY_MS)
        },
      )
    }, delayMs)
  }
  schedule(renewMs)

  return {
    async ensureFresh() {
      if (now() - renewedMs > leaseMs / 2) await renew()
    },
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      await renewing?.catch(() => {})
    },
  }
}
