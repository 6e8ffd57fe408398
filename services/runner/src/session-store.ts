import {
  appendSteps,
  claimNextRun,
  countAttempt,
  type Database,
  finishRuns,
  type FinishedRun,
  type FinishOutcome,
  isStatementError,
  type Lease,
  type NextRun,
  releaseSessions,
  renewLeases,
  type StepsToAppend,
  type AcquiredSessions,
  acquireSessions,
  acquireWaitingSessions,
} from '@workflow-service/database'
import { batchCalls } from '@workflow-service/service-kit'
import type { HeldSessions } from './held-sessions.ts'

/** What this runner reads and writes of sessions and runs, under its own name. */
export interface SessionStore {
  take(sessionIds: readonly string[]): Promise<AcquiredSessions>
  takeWaiting(from?: string): Promise<AcquiredSessions & { next: string }>
  /** Those of the leases that are still held. */
  renew(leases: readonly Lease[]): Promise<readonly Lease[]>
  /** Whether the lease was still held, and the steps are written. */
  append(append: StepsToAppend): Promise<boolean>
  finish(run: FinishedRun): Promise<FinishOutcome>
  claimNext(lease: Lease): Promise<NextRun>
  countAttempt(lease: Lease): Promise<number | undefined>
  release(lease: Lease): Promise<void>
}

const MAX_BATCH = 100

/** Writes that many sessions make at once go together in one statement and one commit. */
export function createSessionStore(options: {
  db: Pick<Database, 'pool'>
  owner: string
  leaseMs: number
  perOrganization: number
  held: Pick<HeldSessions, 'free' | 'byOrganization'>
}): SessionStore {
  const { db, owner, leaseMs, perOrganization, held } = options
  const taking = () => ({ owner, leaseMs, places: held.free, perOrganization, held: held.byOrganization })
  const batch = { maxSize: MAX_BATCH, isItemError: isStatementError }
  const release = batchCalls(async (leases: Lease[]) => {
    await releaseSessions(db, owner, leases)
    return leases.map(() => undefined)
  }, batch)
  return {
    take: (sessionIds) => acquireSessions(db, taking(), sessionIds),
    takeWaiting: (from) => acquireWaitingSessions(db, taking(), from),
    renew: (leases) => renewLeases(db, owner, leaseMs, leases),
    append: batchCalls((appends: StepsToAppend[]) => appendSteps(db, owner, appends), batch),
    finish: batchCalls((runs: FinishedRun[]) => finishRuns(db, owner, runs), batch),
    claimNext: (lease) => claimNextRun(db, owner, lease),
    countAttempt: (lease) => countAttempt(db, owner, lease),
    release,
  }
}
