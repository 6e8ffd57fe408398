import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** What the gateway counts, beside what every process does. */
export interface GatewayMetrics {
  readonly requests: Histogram<'operation' | 'status'>
  readonly refusals: Counter<'code'>
  readonly keyLookUps: Counter
  readonly starts: Counter<'kind'>
  readonly startBatches: Histogram
  readonly workflowDocuments: Counter<'from'>
  readonly wakeUps: Counter<'outcome'>
  readonly brokerUp: Gauge
  readonly rateLimitStoreUp: Gauge
  readonly rateLimitLocalDecisions: Counter
}

export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const registers = [registry]
  return {
    requests: new Histogram({
      name: 'gateway_request_duration_seconds',
      help: 'From the request to the end of its answer.',
      labelNames: ['operation', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    refusals: new Counter({
      name: 'gateway_refusals_total',
      help: 'Requests refused before they were read: not HTTP, too slow, too many at once.',
      labelNames: ['code'],
      registers,
    }),
    keyLookUps: new Counter({
      name: 'gateway_key_look_ups_total',
      help: 'API keys looked up in the database.',
      registers,
    }),
    starts: new Counter({
      name: 'gateway_starts_total',
      help: 'Start requests by what came of them.',
      labelNames: ['kind'],
      registers,
    }),
    startBatches: new Histogram({
      name: 'gateway_start_batch_size',
      help: 'Starts recorded by one statement.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    }),
    workflowDocuments: new Counter({
      name: 'gateway_workflow_documents_total',
      help: 'Workflows answered, by whether their document was kept in memory or read from the database.',
      labelNames: ['from'],
      registers,
    }),
    wakeUps: new Counter({
      name: 'gateway_wake_ups_total',
      help: 'Wake-ups published to the session queue; what failed is found by the sweep.',
      labelNames: ['outcome'],
      registers,
    }),
    brokerUp: new Gauge({ name: 'gateway_broker_up', help: 'Whether wake-ups can be published.', registers }),
    rateLimitStoreUp: new Gauge({
      name: 'gateway_rate_limit_store_up',
      help: 'Whether the shared rate limit store answers; without one, 1.',
      registers,
    }),
    rateLimitLocalDecisions: new Counter({
      name: 'gateway_rate_limit_local_decisions_total',
      help: 'Rate limit decisions made without the shared store, because it did not answer.',
      registers,
    }),
  }
}
