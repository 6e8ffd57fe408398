import type { PublicRunOut } from '@workflow-service/contract'
import { type Db, findEndedRuns, findPublicRun } from '@workflow-service/database'
import { type Logger, repeat, type RepeatedTask } from '@workflow-service/service-kit'

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
/** 5,000 waiting requests take 133 MiB, of which Node alone takes 79 (2 cores, November 2026). */
const MAX_WAITS = 10_000
const MAX_WAITS_PER_ORGANIZATION = MAX_WAITS / 2

/** Creates the store. Polls only while requests wait. */
export function createRunWaits(db: Db, logger: Logger) {
  const waits = new Map<string, { organizationId: string; ends: Set<(over: Over) => void> }>()
  const counts = new Map<string, number>()
  let size = 0
  let isClosed = false
  let polling: RepeatedTask | undefined

  const count = (organizationId: string, by: 1 | -1): void => {
    size += by
    const next = (counts.get(organizationId) ?? 0) + by
    if (next === 0) counts.delete(organizationId)
    else counts.set(organizationId, next)
  }

  async function poll(): Promise<void> {
    const ended = await findEndedRuns(db, [...waits.keys()])
    // One read for all requests that wait for the same run.
    await Promise.all(
      ended.map(async (runId) => {
        const { organizationId = '', ends = [] } = waits.get(runId) ?? {}
        const run = await findPublicRun(db, organizationId, runId)
        for (const end of ends) end(run ?? 'time')
      }),
    )
  }

  return {
    get size() {
      return size
    },
    /**
     * Calls `onOver` once, when the run has ended or the time is over, unless the returned function is called before.
     * Returns undefined when too many requests wait already, and once closed.
     */
    add({ organizationId, runId, waitMs, onOver }: Wait) {
      if (isClosed || size >= MAX_WAITS || (counts.get(organizationId) ?? 0) >= MAX_WAITS_PER_ORGANIZATION)
        return undefined
      const ofRun = waits.get(runId) ?? { organizationId, ends: new Set() }
      waits.set(runId, ofRun)
      const forget = (): void => {
        if (!ofRun.ends.delete(end)) return
        clearTimeout(timer)
        count(organizationId, -1)
        if (ofRun.ends.size === 0) waits.delete(runId)
        if (size === 0) {
          void polling?.stop()
          polling = undefined
        }
      }
      const end = (over: Over): void => {
        forget()
        onOver(over)
      }
      const timer = setTimeout(() => end('time'), waitMs)
      ofRun.ends.add(end)
      count(organizationId, 1)
      polling ??= repeat({ name: 'look at runs for which requests wait', intervalMs: POLL_MS, logger, run: poll })
      return forget
    },
    /** Ends all waits at once: what is sent in their `onOver` arrives before the connections are closed. */
    close() {
      isClosed = true
      for (const { ends } of waits.values()) for (const end of ends) end('closing')
    },
  }
}
