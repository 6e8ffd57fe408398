import type { PublicRunOut } from '@workflow-service/contract'
import { type Db, findEndedRuns, findPublicRun } from '@workflow-service/database'
import { InFlightLimiter, type Logger, repeat } from '@workflow-service/service-kit'

interface Wait {
  readonly organizationId: string
  readonly runId: string
  readonly waitMs: number
  readonly onOver: (over: Over) => void
}

/** The run that has ended; or the time is over; or the gateway stops, and only what is sent at once arrives. */
type Over = PublicRunOut | 'time' | 'closing'

/** One statement looks at the runs of all requests so often. */
const POLL_MS = 200
/**
 * Reads at once of runs that have ended, and of runs of requests whose time is over. Thousands of either may come
 * together, and starts use the same connections. While these are busy, 4 reads at once give 300 runs a second, 10 give
 * 750 (2 cores, November 2026).
 */
const READS_AT_ONCE = 10
/** A request that has waited this long for its turn is answered with the run as it was. */
const READ_WAIT_MS = 10_000
/** 5,000 waiting requests take 133 MiB, of which Node alone takes 79 (2 cores, November 2026). */
const MAX_WAITS = 10_000
/** Of an organization, half. One more is answered at once. */
const SLOTS = { total: MAX_WAITS, perKey: MAX_WAITS / 2, waitMs: 0, maxWaiting: 0, maxWaitingPerKey: 0 }
const READS = {
  total: READS_AT_ONCE,
  perKey: READS_AT_ONCE,
  waitMs: READ_WAIT_MS,
  maxWaiting: MAX_WAITS,
  maxWaitingPerKey: MAX_WAITS,
}

export function createRunWaits(db: Db, logger: Logger) {
  const waits = new Map<string, { organizationId: string; ends: Set<(over: Over) => void> }>()
  const slots = new InFlightLimiter(SLOTS)
  const reads = new InFlightLimiter(READS)
  let isClosed = false

  async function poll(): Promise<void> {
    if (waits.size === 0) return
    const ended = (await findEndedRuns(db, [...waits.keys()])).values()
    const endRest = async () => {
      for (const runId of ended) await endWaits(runId)
    }
    await Promise.all(Array.from({ length: READS_AT_ONCE }, endRest))
  }

  /** One read for all requests that wait for the same run. */
  async function endWaits(runId: string): Promise<void> {
    const ofRun = waits.get(runId)
    // The last one was closed meanwhile.
    if (!ofRun) return
    const run = await findPublicRun(db, ofRun.organizationId, runId)
    for (const end of ofRun.ends) end(run ?? 'time')
  }
  const polling = repeat({ name: 'look at runs for which requests wait', intervalMs: POLL_MS, logger, run: poll })

  return {
    get size() {
      return slots.inFlight
    },
    /** Reads a run when it is its organization's turn. Undefined if it was deleted, and if the turn does not come. */
    async read(organizationId: string, runId: string): Promise<PublicRunOut | undefined> {
      const release = await reads.acquire(organizationId)
      if (typeof release === 'string') return undefined
      try {
        return await findPublicRun(db, organizationId, runId)
      } finally {
        release()
      }
    },
    /**
     * Calls `onOver` once, when the run has ended or the time is over, unless the returned function is called before.
     * Returns undefined when too many requests wait already, and once closed.
     */
    add({ organizationId, runId, waitMs, onOver }: Wait) {
      const release = isClosed ? undefined : slots.tryAcquire(organizationId)
      if (typeof release !== 'function') return undefined
      const ofRun = waits.get(runId) ?? { organizationId, ends: new Set() }
      waits.set(runId, ofRun)
      const forget = (): void => {
        if (!ofRun.ends.delete(end)) return
        clearTimeout(timer)
        release()
        if (ofRun.ends.size === 0) waits.delete(runId)
      }
      const end = (over: Over): void => {
        forget()
        onOver(over)
      }
      const timer = setTimeout(() => end('time'), waitMs)
      ofRun.ends.add(end)
      return forget
    },
    /** Ends all waits at once: what is sent in their `onOver` arrives before the connections are closed. */
    close() {
      isClosed = true
      reads.stopWaiting()
      for (const { ends } of waits.values()) for (const end of ends) end('closing')
      return polling.stop()
    },
  }
}
