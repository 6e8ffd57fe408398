import type { Lease, SourceForAgent, AcquiredSession } from '@workflow-service/database'
import { LeaseLostError, RunInterruptedError } from './agent/agent.ts'

/** A session that this process holds and runs. */
export interface HeldSession {
  readonly lease: Lease
  readonly organizationId: string
  /** Aborts when the lease is lost or the runner is told to stop: what is under way ends at the next step boundary. */
  readonly signal: AbortSignal
  /** Aborts when the lease is lost or the time for stopping is over: what is under way is given up. */
  readonly abort: AbortSignal
  readonly isLost: boolean
  /** A statement that may let the session go is under way: a renewal that misses the lease means nothing. */
  isEnding: boolean
  /** What was read when the session was taken up, until somebody has asked for it: the session may be held for long. */
  sources: readonly SourceForAgent[] | undefined
}

/** The sessions of this process and the places that they take. */
export interface HeldSessions {
  readonly size: number
  readonly free: number
  /** How many are held, by organization. */
  readonly byOrganization: ReadonlyMap<string, number>
  all(): readonly HeldSession[]
  add(taken: AcquiredSession): HeldSession
  remove(session: HeldSession): void
  /** Marks the lease as lost and stops what is under way. True the first time. */
  lose(session: HeldSession): boolean
  /** Tells every session, and those still to come, to end at the next step boundary. */
  interruptAll(): void
  /** Gives up every session, and those still to come. */
  abortAll(): void
}

interface Entry extends HeldSession {
  isLost: boolean
  readonly signalController: AbortController
  readonly abortController: AbortController
}

export function createHeldSessions(concurrency: number): HeldSessions {
  const entries = new Set<Entry>()
  const byOrganization = new Map<string, number>()
  let isInterrupted = false
  let isAborted = false

  const count = (organizationId: string, change: 1 | -1): void => {
    const sessions = (byOrganization.get(organizationId) ?? 0) + change
    if (sessions > 0) byOrganization.set(organizationId, sessions)
    else byOrganization.delete(organizationId)
  }
  const end = (entry: Entry, how: 'interrupted' | 'aborted'): void => {
    entry.signalController.abort()
    if (how === 'aborted') entry.abortController.abort()
  }

  return {
    get size() {
      return entries.size
    },
    get free() {
      return Math.max(0, concurrency - entries.size)
    },
    byOrganization,
    all: () => [...entries],
    add({ lease, organizationId, sources }) {
      const signalController = new AbortController()
      const abortController = new AbortController()
      const entry: Entry = {
        lease,
        organizationId,
        signal: signalController.signal,
        abort: abortController.signal,
        signalController,
        abortController,
        isLost: false,
        isEnding: false,
        sources,
      }
      entries.add(entry)
      count(organizationId, 1)
      if (isAborted) end(entry, 'aborted')
      else if (isInterrupted) end(entry, 'interrupted')
      return entry
    },
    remove(session) {
      if (entries.delete(session as Entry)) count(session.organizationId, -1)
    },
    lose(session) {
      const entry = session as Entry
      if (entry.isLost) return false
      entry.isLost = true
      end(entry, 'aborted')
      return true
    },
    interruptAll() {
      isInterrupted = true
      for (const entry of entries) end(entry, 'interrupted')
    },
    abortAll() {
      isAborted = true
      for (const entry of entries) end(entry, 'aborted')
    },
  }
}

/** Why something under way in the session ended before its time. */
export function endOf(session: HeldSession): LeaseLostError | RunInterruptedError {
  return session.isLost ? new LeaseLostError() : new RunInterruptedError()
}
