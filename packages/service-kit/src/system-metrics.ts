import { Gauge, type Registry } from 'prom-client'
import { withTimeout } from './with-timeout.ts'

/** A scrape answers in time while the database hangs: the other metrics matter most then. */
const READ_TIMEOUT_MS = 1_000

/** How the gauges of the whole system are read; each read may fail while the database or the broker is unavailable. */
export interface SystemReads {
  /** Whether this process is the one that exports them. */
  readonly isReporter: () => Promise<boolean>
  /** The sessions that wait for a runner; `oldestWaitMs` is null if there is none. */
  readonly backlog: () => Promise<{ readonly sessions: number; readonly oldestWaitMs: number | null }>
  /** The messages in the session queue and in its dead-letter queue. */
  readonly queueDepth: () => Promise<{ readonly ready: number; readonly dead: number }>
}

/** What could be read. */
type SystemState = {
  readonly [Name in 'backlog' | 'queueDepth']?: Awaited<ReturnType<SystemReads[Name]>> | undefined
}

/**
 * Registers the gauges of the whole system. Every gateway and runner registers them, and one of these processes exports
 * values, so that a sum over all processes counts nothing twice and the values survive the end of any process.
 */
export function registerSystemMetrics(registry: Registry, reads: SystemReads): void {
  const registers = [registry]
  let reading: Promise<SystemState> | undefined
  // The gauges of one scrape are collected together: they share one read.
  const read = (): Promise<SystemState> =>
    (reading ??= withTimeout(readState(reads), READ_TIMEOUT_MS)
      .catch(() => ({}))
      .finally(() => (reading = undefined)))
  const waiting: Gauge = new Gauge({
    name: 'sessions_waiting',
    help: 'Sessions with work that no runner has leased, without those of suspended organizations. One process exports it; absent while the database is unavailable.',
    registers,
    collect: async () => setOrRemove(waiting, (await read()).backlog?.sessions),
  })
  const oldest: Gauge = new Gauge({
    name: 'sessions_waiting_oldest_seconds',
    help: 'How long the oldest waiting start has waited for a runner. One process exports it; absent while the database is unavailable.',
    registers,
    collect: async () => {
      const { backlog } = await read()
      setOrRemove(oldest, backlog && (backlog.oldestWaitMs ?? 0) / 1_000)
    },
  })
  const depths: Gauge<'queue'> = new Gauge({
    name: 'session_queue_messages',
    help: 'Messages in the session queue (ready) and in its dead-letter queue (dead). One process exports it; absent while the broker or the database is unavailable.',
    labelNames: ['queue'],
    registers,
    collect: async () => {
      const { queueDepth } = await read()
      depths.reset()
      if (!queueDepth) return
      depths.set({ queue: 'ready' }, queueDepth.ready)
      depths.set({ queue: 'dead' }, queueDepth.dead)
    },
  })
}

/** `reset` would set a gauge without labels to 0, which means that nothing waits. */
function setOrRemove(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove()
  else gauge.set(value)
}

async function readState({ isReporter, backlog, queueDepth }: SystemReads): Promise<SystemState> {
  if (!(await isReporter().catch(() => false))) return {}
  const reads = [backlog().catch(() => undefined), queueDepth().catch(() => undefined)] as const
  const [backlogNow, depthNow] = await Promise.all(reads)
  return { backlog: backlogNow, queueDepth: depthNow }
}
