import type { DeliveryKind, DeliveryOutcome } from '@workflow-service/contract'
import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** What the dispatcher counts. No label holds anything of a customer, so their number is bounded. */
export interface DeliveryMetrics {
  /** An outcome that was decided here; the time only where something was sent. */
  count(kind: DeliveryKind, outcome: DeliveryOutcome, durationMs: number | null): void
  /** Entries of the log that the retention deleted, and deliveries that were given up. */
  countDeleted(entries: number): void
  countGivenUp(deliveries: number): void
}

/** Registers the metrics; the gauges are asked when somebody reads them. */
export function createDeliveryMetrics(
  registry: Registry,
  gauges: { inFlight: () => number; waiting: () => number; unrecorded: () => number },
): DeliveryMetrics {
  const registers = [registry]
  const deliveries = new Counter({
    name: 'webhook_deliveries_total',
    help: 'Requests to endpoints by kind (verification, payload) and outcome.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  const durations = new Histogram({
    name: 'webhook_delivery_duration_seconds',
    help: 'From the look-up of the name to the outcome.',
    labelNames: ['kind', 'outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30],
    registers,
  })
  const deleted = new Counter({
    name: 'webhook_log_entries_deleted_total',
    help: 'Entries of the delivery log deleted because of their age.',
    registers,
  })
  const givenUp = new Counter({
    name: 'webhook_deliveries_given_up_total',
    help: 'Deliveries of dead dispatchers that became unknown.',
    registers,
  })
  const gauge = (name: string, help: string, read: () => number): void => {
    const made: Gauge = new Gauge({ name, help, registers, collect: () => made.set(read()) })
  }
  gauge('webhook_deliveries_in_flight', 'Requests to endpoints that are open.', gauges.inFlight)
  gauge('webhook_deliveries_waiting', 'Deliveries that wait for a place.', gauges.waiting)
  gauge('webhook_outcomes_unrecorded', 'Outcomes that wait for the database.', gauges.unrecorded)
  return {
    count: (kind, outcome, durationMs) => {
      deliveries.inc({ kind, outcome })
      if (durationMs !== null) durations.observe({ kind, outcome }, durationMs / 1_000)
    },
    countDeleted: (entries) => deleted.inc(entries),
    countGivenUp: (count) => givenUp.inc(count),
  }
}
