import type { ModelAnswerStep, SessionSummaryStep } from '@workflow-service/contract'
import type { DeadLetterReason } from '@workflow-service/messaging'
import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** Each has a count from the beginning: `increase` does not see the first count of a series that begins with it. */
const DEAD_LETTER_REASONS: readonly DeadLetterReason[] = ['not_json', 'wrong_shape', 'unknown_type']

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

export type RunnerMetrics = ReturnType<typeof createRunnerMetrics>

/**
 * Registers the metrics. No label value comes from a customer, so the number of time series is bounded. The number of
 * active sessions is read at each scrape.
 */
export function createRunnerMetrics(registry: Registry, slots: number, activeSessions: { readonly size: number }) {
  const registers = [registry]
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]): Counter<Label> =>
    new Counter({ name, help, labelNames, registers })
  const histogram = <Label extends string = never>(
    name: string,
    help: string,
    ...labelNames: Label[]
  ): Histogram<Label> => new Histogram({ name, help, labelNames, registers, buckets: DURATION_BUCKETS })
  const gauge = (name: string, help: string, read: () => number): void => {
    const created: Gauge = new Gauge({ name, help, registers, collect: () => created.set(read()) })
  }
  gauge('runner_leases_held', 'Sessions that this runner has leased.', () => activeSessions.size)
  gauge('runner_places', 'Sessions that this runner may lease at once.', () => slots)
  const deadLetters = counter(
    'session_queue_dead_letters_total',
    'Messages that were dead-lettered because they could not be read.',
    'reason',
  )
  for (const reason of DEAD_LETTER_REASONS) deadLetters.inc({ reason }, 0)
  return {
    runs: counter(
      'runner_runs_total',
      'Runs by outcome; interrupted, parked and lease_lost runs continue later or on another runner.',
      'outcome',
    ),
    runDurations: histogram(
      'runner_run_duration_seconds',
      'From the start of a run on this runner to its outcome.',
      'outcome',
    ),
    stepDurations: histogram(
      'runner_step_duration_seconds',
      'Between two writes to the journal, by the kind of the step written.',
      'kind',
    ),
    startWaits: histogram(
      'runner_start_wait_seconds',
      'From accepting a start to starting its run for the first time.',
    ),
    firstDeliveries: histogram(
      'runner_start_to_endpoint_seconds',
      'From accepting a start to sending its first payload to the endpoint, without runs that waited for an approval before.',
    ),
    attemptsFailed: counter('runner_attempts_failed_total', 'Attempts at a run that failed with an unexpected error.'),
    sessionsAcquired: counter(
      'runner_sessions_taken_total',
      'Sessions acquired, by how they were found: by a message or by the sweep.',
      'by',
    ),
    leasesLost: counter('runner_leases_lost_total', 'Leases that were lost to another runner.'),
    autoRuns: counter('runner_auto_runs_total', 'Auto-runs that were started.'),
    waitingDeliveries: new Gauge({
      name: 'runner_deliveries_waiting',
      help: 'Deliveries and look-ups that wait because the dispatcher is unavailable, or it or their webhook source is at its limit.',
      registers,
    }),
    modelTokens: counter(
      'runner_model_tokens_total',
      'Tokens that the model reports. Cached ones (cache_read, cache_write) are part of the input, reasoning is part of the output.',
      'direction',
    ),
    modelCost: counter(
      'runner_model_cost_micros_total',
      'What answers of models cost, in millionths of the currency, by the name of the model.',
      'model',
      'currency',
    ),
    modelAnswers: histogram('runner_model_answer_seconds', 'From a request to the model to its answer.'),
    deadLetters,
    brokerUp: new Gauge({
      name: 'runner_broker_up',
      help: 'Whether the connection to the broker is up, by role.',
      labelNames: ['role'],
      registers,
    }),
  }
}

export function recordModelAnswer(
  { modelTokens, modelCost, modelAnswers }: RunnerMetrics,
  answer: ModelAnswerStep | SessionSummaryStep,
): void {
  for (const direction of ['input', 'cache_read', 'cache_write', 'output', 'reasoning'] as const) {
    modelTokens.inc({ direction }, answer[`${direction}_tokens`] ?? 0)
  }
  const { model_name: name, currency, cost_micros: cost } = answer
  if (cost !== undefined && currency !== undefined) modelCost.inc({ model: name ?? answer.model, currency }, cost)
  modelAnswers.observe((answer.latency_ms ?? 0) / 1_000)
}
