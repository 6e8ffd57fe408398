import type { Backlog } from '@workflow-service/database'
import type { DeadLetterReason } from '@workflow-service/messaging'
import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** How a run, or this runner's part of it, ended. */
export type RunEnd = 'succeeded' | 'failed' | 'interrupted' | 'lease_lost'

/** What the runner counts. No label holds anything of a customer, so their number is bounded. */
export interface RunnerMetrics {
  readonly runs: Counter<'outcome'>
  readonly runDurations: Histogram<'outcome'>
  readonly stepDurations: Histogram<'kind'>
  readonly startWaits: Histogram
  readonly attemptsFailed: Counter
  readonly sessionsTaken: Counter<'by'>
  readonly leasesLost: Counter
  readonly autoRuns: Counter
  readonly modelTokens: Counter<'direction'>
  readonly deadLetters: Counter<'reason'>
  readonly brokerUp: Gauge<'role'>
}

/** What is asked for when somebody reads the metrics; undefined when it cannot be told now. */
export interface RunnerGauges {
  held: () => number
  places: () => number
  depth: () => Promise<{ ready: number; dead: number } | undefined>
  backlog: () => Promise<Backlog | undefined>
}

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

/** Registers the metrics. */
export function createRunnerMetrics(registry: Registry, gauges: RunnerGauges): RunnerMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number): void => {
    const made: Gauge = new Gauge({ name, help, registers, collect: () => made.set(read()) })
  }
  gauge('runner_leases_held', 'Sessions that this runner holds.', gauges.held)
  gauge('runner_places', 'Sessions that this runner may hold.', gauges.places)
  const depths: Gauge<'queue'> = new Gauge({
    name: 'session_queue_messages',
    help: 'Messages in the queue of wake-ups (ready) and in its dead-letter queue (dead); absent while the broker is away.',
    labelNames: ['queue'],
    registers,
    collect: async () => {
      const depth = await gauges.depth()
      depths.reset()
      if (!depth) return
      depths.set({ queue: 'ready' }, depth.ready)
      depths.set({ queue: 'dead' }, depth.dead)
    },
  })
  const oldest = new Gauge({
    name: 'sessions_waiting_oldest_seconds',
    help: 'How long the longest waiting start has been waiting for a runner; absent while the database is away.',
    registers,
  })
  const waiting: Gauge = new Gauge({
    name: 'sessions_waiting',
    help: 'Sessions with work that no runner holds; absent while the database is away.',
    registers,
    collect: async () => {
      const backlog = await gauges.backlog()
      waiting.reset()
      oldest.reset()
      if (!backlog) return
      waiting.set(backlog.sessions)
      oldest.set((backlog.oldestWaitMs ?? 0) / 1_000)
    },
  })
  return {
    runs: new Counter({
      name: 'runner_runs_total',
      help: 'Runs by how they ended here; interrupted and lease_lost go on elsewhere.',
      labelNames: ['outcome'],
      registers,
    }),
    runDurations: new Histogram({
      name: 'runner_run_duration_seconds',
      help: 'From taking a run up to its end here.',
      labelNames: ['outcome'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    stepDurations: new Histogram({
      name: 'runner_step_duration_seconds',
      help: 'From the step before to this one in the journal, by the kind of step.',
      labelNames: ['kind'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    startWaits: new Histogram({
      name: 'runner_start_wait_seconds',
      help: 'From accepting a start to taking it up for the first time.',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    attemptsFailed: new Counter({
      name: 'runner_attempts_failed_total',
      help: 'Attempts at a run that ended with an error nobody foresaw.',
      registers,
    }),
    sessionsTaken: new Counter({
      name: 'runner_sessions_taken_total',
      help: 'Sessions taken up, by what led to them: a message or the sweep.',
      labelNames: ['by'],
      registers,
    }),
    leasesLost: new Counter({
      name: 'runner_leases_lost_total',
      help: 'Sessions that another runner took over.',
      registers,
    }),
    autoRuns: new Counter({ name: 'runner_auto_runs_total', help: 'Scheduled runs that were started.', registers }),
    modelTokens: new Counter({
      name: 'runner_model_tokens_total',
      help: 'Tokens that the model says it read (input) and wrote (output).',
      labelNames: ['direction'],
      registers,
    }),
    deadLetters: new Counter<'reason'>({
      name: 'session_queue_dead_letters_total',
      help: 'Messages that could not be read.',
      labelNames: ['reason' satisfies keyof { reason: DeadLetterReason }],
      registers,
    }),
    brokerUp: new Gauge({
      name: 'runner_broker_up',
      help: 'Whether the connection to the broker is up, by what it is for.',
      labelNames: ['role'],
      registers,
    }),
  }
}
