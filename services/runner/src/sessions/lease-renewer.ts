import { type Logger, repeat } from '@workflow-service/service-kit'
import type { ActiveSessions, LeasedSession } from './active-sessions.ts'
import type { SessionStore } from './session-store.ts'

/** Keeps this process's leases alive until it is stopped. */
export interface LeaseRenewer {
  /**
   * Renews the leases if that is overdue, as after a pause of the process or an outage of the database. Call it before
   * acquiring sessions: otherwise this process could acquire its own sessions, whose leases have expired, a second time.
   * Rejects when the leases cannot be renewed.
   */
  ensureFresh(): Promise<void>
  stop(): Promise<void>
}

const RETRY_MS = 500

/**
 * Renews all leases together, well before they expire, and reports those that another runner has acquired. During an
 * outage of the database no lease is given up: no other runner can acquire one either, and every write checks the epoch.
 */
export function startLeaseRenewer(options: {
  activeSessions: ActiveSessions
  store: Pick<SessionStore, 'renew'>
  leaseMs: number
  renewMs: number
  logger: Logger
  onLost: (session: LeasedSession) => void
  /** A monotonic clock in milliseconds; tests set another one. */
  now?: () => number
}): LeaseRenewer {
  const { activeSessions, store, leaseMs, renewMs, logger, onLost, now = () => performance.now() } = options
  let renewedMs = now()
  let renewing: Promise<void> | undefined

  const renewAll = async (): Promise<void> => {
    // The leases are at least as fresh as the moment before the statement was sent, not as that of its answer.
    const startedMs = now()
    const sessions = activeSessions.all()
    if (sessions.length > 0) {
      const renewed = await store.renew(sessions.map(({ sessionId, epoch }) => ({ sessionId, epoch })))
      const epochs = new Map(renewed.map(({ sessionId, epoch }) => [sessionId, epoch]))
      const stillActive = new Set(activeSessions.all())
      for (const session of sessions) {
        const isRenewed = epochs.get(session.sessionId) === session.epoch
        if (!isRenewed && !session.isEnding && stillActive.has(session)) onLost(session)
      }
    }
    renewedMs = startedMs
  }
  const renew = (): Promise<void> =>
    (renewing ??= renewAll().finally(() => {
      renewing = undefined
    }))
  const task = repeat({
    name: 'renew leases',
    intervalMs: renewMs,
    firstDelayMs: renewMs,
    retryMs: RETRY_MS,
    logger,
    run: renew,
  })

  return {
    async ensureFresh() {
      if (now() - renewedMs > leaseMs / 2) await renew()
    },
    async stop() {
      await task.stop()
      await renewing?.catch(() => {})
    },
  }
}
