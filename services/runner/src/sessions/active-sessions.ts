import type { AcquiredSession } from '@workflow-service/database'
import { LeaseLostError, RunInterruptedError } from '../run-errors.ts'
import type { ActiveLease } from '../runs/active-lease.ts'

export interface LeasedSession extends ActiveLease {
  readonly organizationId: string
}

/** The sessions that this process has leased. Each occupies one slot. */
export type ActiveSessions = ReturnType<typeof createActiveSessions>

interface Entry extends LeasedSession {
  isLost: boolean
  readonly signalController: AbortController
  readonly abortController: AbortController
}

export function createActiveSessions(concurrency: number) {
  const entries = new Set<Entry>()
  const byOrganization = new Map<string, number>()
  let isInterrupted = false
  let isAborted = false

  const count = (organizationId: string, change: 1 | -1): void => {
    const sessions = (byOrganization.get(organizationId) ?? 0) + change
    if (sessions > 0) byOrganization.set(organizationId, sessions)
    else byOrganization.delete(organizationId)
  }
  const interrupt = (entry: Entry): void => entry.signalController.abort(new RunInterruptedError())
  const abort = (entry: Entry, reason: LeaseLostError | RunInterruptedError): void => {
    entry.signalController.abort(reason)
    entry.abortController.abort(reason)
  }

  return {
    get size() {
      return entries.size
    },
    get freeSlots() {
      return Math.max(0, concurrency - entries.size)
    },
    byOrganization,
    all: () => [...entries],
    add({ lease, organizationId }: Pick<AcquiredSession, 'lease' | 'organizationId'>) {
      const signalController = new AbortController()
      const abortController = new AbortController()
      const entry: Entry = {
        sessionId: lease.sessionId,
        epoch: lease.epoch,
        organizationId,
        signal: signalController.signal,
        abort: abortController.signal,
        signalController,
        abortController,
        isLost: false,
        isEnding: false,
      }
      entries.add(entry)
      count(organizationId, 1)
      if (isInterrupted) interrupt(entry)
      if (isAborted) abort(entry, new RunInterruptedError())
      return entry
    },
    remove(session: LeasedSession) {
      if (entries.delete(session as Entry)) count(session.organizationId, -1)
    },
    /** Marks the lease as lost and aborts both signals. Returns whether it was not marked before. */
    markLost(session: LeasedSession) {
      const entry = session as Entry
      if (entry.isLost) return false
      entry.isLost = true
      abort(entry, new LeaseLostError())
      return true
    },
    /** Makes every session, and each one added later, end at its next step boundary. */
    interruptAll() {
      isInterrupted = true
      for (const entry of entries) interrupt(entry)
    },
    /** Abandons every session, and each one added later. */
    abortAll() {
      isAborted = true
      for (const entry of entries) abort(entry, new RunInterruptedError())
    },
  }
}
