import {
  acquireSessions,
  acquireWaitingSessions,
  claimNextRun,
  type Database,
  type FinishedRun,
  finishRuns,
  type Lease,
  type NextRun,
  releaseSessions,
  type ReleasedLease,
  renewLeases,
} from '@workflow-service/database'
import { whileEnding } from '../runs/active-lease.ts'
import { batchAtFirst, retryWhileUnavailable } from '../runs/retry-while-unavailable.ts'
import type { ActiveSessions, LeasedSession } from './active-sessions.ts'

const MAX_BATCH = 100

/** The session has no further run, and is released. */
export interface Released {
  readonly kind: 'released'
}

/**
 * Creates the store. Writes that many sessions make at once share one statement and one commit. Calls for one session
 * repeat while the database is unavailable, until it is `abandoned`; they throw a SlowStatementError when only their
 * own statement times out.
 */
export function createSessionStore(options: {
  db: Pick<Database, 'pool' | 'ping'>
  owner: string
  leaseMs: number
  perOrganization: number
  activeSessions: Pick<ActiveSessions, 'freeSlots' | 'byOrganization'>
}) {
  const { db, owner, leaseMs, perOrganization, activeSessions } = options
  const acquireOptions = () => ({
    owner,
    leaseMs,
    slots: activeSessions.freeSlots,
    maxPerOrganization: perOrganization,
    leasedByOrganization: activeSessions.byOrganization,
  })
  const batch = { maxSize: MAX_BATCH }
  const finish = batchAtFirst(db, (runs: FinishedRun[]) => finishRuns(db, owner, runs), batch)
  const release = batchAtFirst(
    db,
    async (leases: ReleasedLease[]) => {
      await releaseSessions(db, owner, leases)
      return leases.map(() => undefined)
    },
    batch,
  )
  const retry = <Result>(session: LeasedSession, operation: (timeouts: number) => Promise<Result>): Promise<Result> =>
    retryWhileUnavailable({ db, signal: session.abandoned }, operation)
  const claimNext = (session: LeasedSession): Promise<NextRun> => retry(session, () => claimNextRun(db, owner, session))

  return {
    /** Leases those of the sessions that have work and no live lease, as far as slots and shares allow. */
    acquire: (sessionIds: readonly string[]) => acquireSessions(db, acquireOptions(), sessionIds),
    /**
     * Leases waiting sessions of the organizations from this one on, also those whose runner has ended; `next` is where
     * the next call continues.
     */
    acquireWaiting: (fromOrganizationId: string, endedRunners: readonly string[]) =>
      acquireWaitingSessions(db, acquireOptions(), fromOrganizationId, endedRunners),
    /** Resolves to the leases that are still this runner's. */
    renew: (leases: readonly Lease[]) => renewLeases(db, owner, leaseMs, leases),
    claimNext,
    /** Records how a run ended, and claims the next one or releases the session in the same statement. */
    finishRun: (session: LeasedSession, run: Omit<FinishedRun, 'lease'>) =>
      whileEnding<NextRun | Released>(
        session,
        async () => {
          let attempts = 0
          const outcome = await retry(session, (timeouts) => {
            attempts++
            return finish({ ...run, lease: session }, timeouts)
          })
          if (outcome.kind === 'finished') {
            if (outcome.next) return { kind: 'run', run: outcome.next }
            return outcome.isReleased ? { kind: 'released' } : await claimNext(session)
          }
          if (attempts === 1) return { kind: 'lease_lost' }
          // An earlier attempt may have taken effect although its answer was lost. The lease decides: if it is still
          // this runner's, the session has a next run; if not, that attempt released it.
          const next = await claimNext(session)
          return next.kind === 'lease_lost' ? { kind: 'released' } : next
        },
        ({ kind }) => kind === 'released',
      ),
    /** Releases the session. With a delay, parks it: no runner acquires it before. */
    release(session: LeasedSession, parkedMs?: number): Promise<void> {
      const { sessionId, epoch } = session
      const lease = { sessionId, epoch, ...(parkedMs === undefined ? {} : { parkedMs }) }
      return whileEnding(
        session,
        () => retry(session, (timeouts) => release(lease, timeouts)),
        () => true,
      )
    },
  }
}
