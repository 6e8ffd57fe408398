import type { AcquiredSession } from '@workflow-service/database'
import { LeaseLostError, RunInterruptedError } from '../run-errors.ts'
import type { ActiveLease } from '../runs/active-lease.ts'

export interface LeasedSession extends ActiveLease {
  readonly organizationId: string
  isLost: boolean
}

/** The sessions that this process has leased. Each occupies one slot. */
export type ActiveSessions = ReturnType<typeof createActiveSessions>

export function createActiveSessions(concurrency: number) {
  /** What aborts the two signals of each. */
  const sessions = new Map<LeasedSession, { readonly interrupt: AbortController; readonly abandon: AbortController }>()
  const byOrganization = new Map<string, number>()
  let isInterrupted = false
  let isAborted = false

  const count = (organizationId: string, change: 1 | -1): void => {
    const active = (byOrganization.get(organizationId) ?? 0) + change
    if (active > 0) byOrganization.set(organizationId, active)
    else byOrganization.delete(organizationId)
  }
  const interrupt = (session: LeasedSession): void => sessions.get(session)?.interrupt.abort(new RunInterruptedError())
  const abort = (session: LeasedSession, reason: LeaseLostError | RunInterruptedError): void => {
    sessions.get(session)?.interrupt.abort(reason)
    sessions.get(session)?.abandon.abort(reason)
  }

  return {
    get size() {
      return sessions.size
    },
    get freeSlots() {
      return Math.max(0, concurrency - sessions.size)
    },
    byOrganization,
    all: () => [...sessions.keys()],
    add({ lease, organizationId }: Pick<AcquiredSession, 'lease' | 'organizationId'>): LeasedSession {
      const controllers = { interrupt: new AbortController(), abandon: new AbortController() }
      const session = {
        sessionId: lease.sessionId,
        epoch: lease.epoch,
        organizationId,
        interrupted: controllers.interrupt.signal,
        abandoned: controllers.abandon.signal,
        isLost: false,
        isEnding: false,
      }
      sessions.set(session, controllers)
      count(organizationId, 1)
      if (isInterrupted) interrupt(session)
      if (isAborted) abort(session, new RunInterruptedError())
      return session
    },
    remove(session: LeasedSession) {
      if (sessions.delete(session)) count(session.organizationId, -1)
    },
    /** Marks the lease as lost and aborts both signals. Returns whether it was not marked before. */
    markLost(session: LeasedSession) {
      if (session.isLost) return false
      session.isLost = true
      abort(session, new LeaseLostError())
      return true
    },
    /** Makes every session, and each one added later, end at its next step boundary. */
    interruptAll() {
      isInterrupted = true
      for (const session of sessions.keys()) interrupt(session)
    },
    /** Abandons every session, and each one added later. */
    abortAll() {
      isAborted = true
      for (const session of sessions.keys()) abort(session, new RunInterruptedError())
    },
  }
}
