import { type Database, findEndedRuns } from '@workflow-service/database'
import { type Logger, repeat, type RepeatedTask } from '@workflow-service/service-kit'

/** Requests that wait for the end of a run. */
export interface RunWaits {
  /**
   * Calls `onOver` once, when the run has ended or the time is over, unless the returned function is called before.
   * Returns undefined when too many requests wait already, and once closed.
   */
  add(wait: Wait): (() => void) | undefined
  readonly size: number
  /** Ends all waits at once: what is sent in their `onOver` arrives before the connections are closed. */
  close(): void
}

interface Wait {
  readonly organizationId: string
  readonly runId: string
  readonly waitMs: number
  /** `isClosing`: the gateway stops, and only what is sent at once arrives. */
  readonly onOver: (isClosing: boolean) => void
}

/** One statement looks at the runs of all requests so often. */
const POLL_MS = 200
/** A waiting request takes about 10 KiB. */
const MAX_WAITS = 10_000
const MAX_WAITS_PER_ORGANIZATION = MAX_WAITS / 2

/** Creates the store. Polls only while requests wait. */
export function createRunWaits(db: Pick<Database, 'pool'>, logger: Logger): RunWaits {
  const waits = new Map<string, Set<(isClosing: boolean) => void>>()
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
    for (const runId of ended) for (const end of waits.get(runId) ?? []) end(false)
  }

  return {
    get size() {
      return size
    },
    add({ organizationId, runId, waitMs, onOver }) {
      if (isClosed || size >= MAX_WAITS || (counts.get(organizationId) ?? 0) >= MAX_WAITS_PER_ORGANIZATION)
        return undefined
      const ofRun = waits.get(runId) ?? new Set()
      waits.set(runId, ofRun)
      const forget = (): void => {
        if (!ofRun.delete(end)) return
        clearTimeout(timer)
        count(organizationId, -1)
        if (ofRun.size === 0) waits.delete(runId)
        if (size === 0) {
          void polling?.stop()
          polling = undefined
        }
      }
      const end = (isClosing: boolean): void => {
        forget()
        onOver(isClosing)
      }
      const timer = setTimeout(() => end(false), waitMs)
      ofRun.add(end)
      count(organizationId, 1)
      polling ??= repeat({ name: 'look at runs for which requests wait', intervalMs: POLL_MS, logger, run: poll })
      return forget
    },
    close() {
      isClosed = true
      for (const ofRun of waits.values()) for (const end of ofRun) end(true)
    },
  }
}
