import { DELIVERY_KINDS, DELIVERY_OUTCOMES, type DeliveryKind, type DeliveryOutcome } from '@workflow-service/contract'
import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** Registers the metrics. Each gauge function is called when the metrics are read. */
export function createDeliveryMetrics(
  registry: Registry,
  gauges: { inFlight: () => number; waiting: () => number; unrecorded: () => number },
) {
  const registers = [registry]
  const deliveries = new Counter({
    name: 'webhook_deliveries_total',
    help: 'Requests to endpoints by kind (verification, payload) and outcome.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  // `increase` does not see the first count of a series that begins with it, and an alert must.
  for (const kind of DELIVERY_KINDS) for (const outcome of DELIVERY_OUTCOMES) deliveries.inc({ kind, outcome }, 0)
  const durations = new Histogram({
    name: 'webhook_delivery_duration_seconds',
    help: 'Time from the DNS look-up to the outcome.',
    labelNames: ['kind', 'outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30],
    registers,
  })
  const deleted = new Counter({
    name: 'webhook_log_entries_deleted_total',
    help: 'Entries of the delivery log deleted because of their age.',
    registers,
  })
  const retired = new Counter({
    name: 'retention_rows_deleted_total',
    help: 'Rows deleted because of their age, by kind, such as runs or journal_steps.',
    labelNames: ['rows'],
    registers,
  })
  const abandoned = new Counter({
    name: 'webhook_deliveries_given_up_total',
    help: 'Deliveries of dead dispatchers that became unknown.',
    registers,
  })
  const addGauge = (name: string, help: string, read: () => number): void => {
    const gauge: Gauge = new Gauge({ name, help, registers, collect: () => gauge.set(read()) })
  }
  addGauge('webhook_deliveries_in_flight', 'Requests to endpoints in flight.', gauges.inFlight)
  addGauge(
    'webhook_deliveries_waiting',
    'Requests that wait for a slot of their source or of the process.',
    gauges.waiting,
  )
  addGauge('webhook_outcomes_unrecorded', 'Outcomes in memory that are not yet in the database.', gauges.unrecorded)
  return {
    /** Counts an outcome. `durationMs` is null if no request was made. */
    count: (kind: DeliveryKind, outcome: DeliveryOutcome, durationMs: number | null) => {
      deliveries.inc({ kind, outcome })
      if (durationMs !== null) durations.observe({ kind, outcome }, durationMs / 1_000)
    },
    /** Counts rows deleted because of their age; `deliveries` have a counter of their own. */
    countRetired: (rows: string, count: number) =>
      rows === 'deliveries' ? deleted.inc(count) : retired.inc({ rows }, count),
    /** Counts deliveries of dead dispatchers that became `unknown`. */
    countAbandoned: (count: number) => abandoned.inc(count),
  }
}
