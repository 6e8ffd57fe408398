import type { ModelAnswerStep } from '@workflow-service/contract'
import type { DeadLetterReason } from '@workflow-service/messaging'
import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** The runner's metrics. No label value comes from a customer, so the number of time series is bounded. */
export interface RunnerMetrics {
  readonly runs: Counter<'outcome'>
  readonly runDurations: Histogram<'outcome'>
  readonly stepDurations: Histogram<'kind'>
  readonly startWaits: Histogram
  readonly firstDeliveries: Histogram
  readonly attemptsFailed: Counter
  readonly sessionsAcquired: Counter<'by'>
  readonly leasesLost: Counter
  readonly autoRuns: Counter
  readonly waitingDeliveries: Gauge
  readonly modelTokens: Counter<'direction'>
  readonly modelAnswers: Histogram
  readonly deadLetters: Counter<'reason'>
  readonly brokerUp: Gauge<'role'>
}

/** Values that are read at each scrape. */
export interface RunnerGauges {
  activeSessions: () => number
  slots: () => number
}

/** Each has a count from the beginning: `increase` does not see the first count of a series that begins with it. */
const DEAD_LETTER_REASONS: readonly DeadLetterReason[] = ['not_json', 'wrong_shape', 'unknown_type']

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

/** Registers the metrics. */
export function createRunnerMetrics(registry: Registry, gauges: RunnerGauges): RunnerMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number): void => {
    const created: Gauge = new Gauge({ name, help, registers, collect: () => created.set(read()) })
  }
  gauge('runner_leases_held', 'Sessions that this runner has leased.', gauges.activeSessions)
  gauge('runner_places', 'Sessions that this runner may lease at once.', gauges.slots)
  const deadLetters = new Counter<'reason'>({
    name: 'session_queue_dead_letters_total',
    help: 'Messages that were dead-lettered because they could not be read.',
    labelNames: ['reason'],
    registers,
  })
  for (const reason of DEAD_LETTER_REASONS) deadLetters.inc({ reason }, 0)
  return {
    runs: new Counter({
      name: 'runner_runs_total',
      help: 'Runs by outcome; interrupted, parked and lease_lost runs continue later or on another runner.',
      labelNames: ['outcome'],
      registers,
    }),
    runDurations: new Histogram({
      name: 'runner_run_duration_seconds',
      help: 'From the start of a run on this runner to its outcome.',
      labelNames: ['outcome'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    stepDurations: new Histogram({
      name: 'runner_step_duration_seconds',
      help: 'Between two writes to the journal, by the kind of the step written.',
      labelNames: ['kind'],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    startWaits: new Histogram({
      name: 'runner_start_wait_seconds',
      help: 'From accepting a start to starting its run for the first time.',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    firstDeliveries: new Histogram({
      name: 'runner_start_to_endpoint_seconds',
      help: 'From accepting a start to sending its first payload to the endpoint, without runs that waited for an approval before.',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    attemptsFailed: new Counter({
      name: 'runner_attempts_failed_total',
      help: 'Attempts at a run that failed with an unexpected error.',
      registers,
    }),
    sessionsAcquired: new Counter({
      name: 'runner_sessions_taken_total',
      help: 'Sessions acquired, by how they were found: by a message or by the sweep.',
      labelNames: ['by'],
      registers,
    }),
    leasesLost: new Counter({
      name: 'runner_leases_lost_total',
      help: 'Leases that were lost to another runner.',
      registers,
    }),
    autoRuns: new Counter({ name: 'runner_auto_runs_total', help: 'Auto-runs that were started.', registers }),
    waitingDeliveries: new Gauge({
      name: 'runner_deliveries_waiting',
      help: 'Deliveries that wait because the dispatcher is unavailable, or their webhook source is at its limit.',
      registers,
    }),
    modelTokens: new Counter({
      name: 'runner_model_tokens_total',
      help: 'Tokens that the model reports. Cached ones (cache_read, cache_write) are part of the input, reasoning is part of the output.',
      labelNames: ['direction'],
      registers,
    }),
    modelAnswers: new Histogram({
      name: 'runner_model_answer_seconds',
      help: 'From a request to the model to its answer.',
      buckets: DURATION_BUCKETS,
      registers,
    }),
    deadLetters,
    brokerUp: new Gauge({
      name: 'runner_broker_up',
      help: 'Whether the connection to the broker is up, by role.',
      labelNames: ['role'],
      registers,
    }),
  }
}

/** Records the tokens and the latency of an answer of the model. */
export function recordModelAnswer({ modelTokens, modelAnswers }: RunnerMetrics, answer: ModelAnswerStep): void {
  const tokens = {
    input: answer.input_tokens,
    cache_read: answer.cache_read_tokens,
    cache_write: answer.cache_write_tokens,
    output: answer.output_tokens,
    reasoning: answer.reasoning_tokens,
  }
  for (const [direction, count] of Object.entries(tokens)) modelTokens.inc({ direction }, count ?? 0)
  modelAnswers.observe((answer.latency_ms ?? 0) / 1_000)
}
