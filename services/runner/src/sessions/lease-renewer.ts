import { repeat } from '@workflow-service/service-kit'
import type { RunnerContext } from '../runner-context.ts'
import type { LeasedSession } from './active-sessions.ts'

/** Keeps this process's leases alive until it is stopped. */
export type LeaseRenewer = ReturnType<typeof startLeaseRenewer>

/** Until the next attempt after one that failed. */
const RETRY_MS = 500

interface RenewerContext extends Pick<RunnerContext, 'activeSessions' | 'logger'> {
  readonly sessionStore: Pick<RunnerContext['sessionStore'], 'renew'>
  readonly timing: Pick<RunnerContext['timing'], 'leaseMs' | 'renewMs'>
}

/**
 * Renews all leases together, well before they expire, and reports those that another runner has acquired. During an
 * outage of the database no lease is given up: no other runner can acquire one either, and every write checks the
 * epoch. A session whose row is locked is renewed with the next attempt, 500 ms later.
 * @param options.now A monotonic clock in milliseconds; tests set another one.
 */
export function startLeaseRenewer(
  { activeSessions, sessionStore, timing, logger }: RenewerContext,
  onLost: (session: LeasedSession) => void,
  { retryMs = RETRY_MS, now = () => performance.now() } = {},
) {
  const { leaseMs, renewMs } = timing
  let renewedMs = now()
  let renewing: Promise<number> | undefined

  /** Resolves to the number of leases whose rows were locked. */
  const renewAll = async (): Promise<number> => {
    // The leases are at least as fresh as the moment before the statement was sent, not as that of its answer.
    const startedMs = now()
    const sessions = activeSessions.all()
    let lockedRows = 0
    if (sessions.length > 0) {
      const own = await sessionStore.renew(sessions.map(({ sessionId, epoch }) => ({ sessionId, epoch })))
      lockedRows = own.filter(({ isRenewed }) => !isRenewed).length
      const epochs = new Map(own.map(({ sessionId, epoch }) => [sessionId, epoch]))
      const stillActive = new Set(activeSessions.all())
      for (const session of sessions) {
        const isOwn = epochs.get(session.sessionId) === session.epoch
        if (!isOwn && !session.isEnding && stillActive.has(session)) onLost(session)
      }
    }
    renewedMs = startedMs
    return lockedRows
  }
  const renew = (): Promise<number> =>
    (renewing ??= renewAll().finally(() => {
      renewing = undefined
    }))
  const task = repeat({
    name: 'renew leases',
    intervalMs: renewMs,
    firstDelayMs: renewMs,
    retryMs,
    logger,
    async run() {
      const lockedRows = await renew()
      if (lockedRows > 0)
        throw new Error(`The rows of ${lockedRows} sessions are locked; their leases are renewed later`)
    },
  })

  return {
    /**
     * Renews the leases if that is overdue, as after a pause of the process or an outage of the database. Call it
     * before acquiring sessions: otherwise this process could acquire its own sessions, whose leases have expired, a
     * second time. Rejects when the leases cannot be renewed.
     */
    async ensureFresh() {
      if (now() - renewedMs > leaseMs / 2) await renew()
    },
    async stop() {
      await task.stop()
      await renewing?.catch(() => {})
    },
  }
}
