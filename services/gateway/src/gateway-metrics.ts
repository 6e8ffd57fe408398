import { Counter, Gauge, Histogram, type Registry } from '@workflow-service/service-kit'

/** Registers the gateway's own metrics. `runWaits` counts the requests that wait for the end of a run now. */
export function createGatewayMetrics(registry: Registry, runWaits: () => number) {
  const registers = [registry]
  const counter = <Label extends string = never>(name: string, help: string, ...labelNames: Label[]): Counter<Label> =>
    new Counter({ name, help, labelNames, registers })
  return {
    runWaits: new Gauge({
      name: 'gateway_run_waits',
      help: 'Requests that wait for the end of a run.',
      registers,
      collect() {
        this.set(runWaits())
      },
    }),
    requests: new Histogram({
      name: 'gateway_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its answer.',
      labelNames: ['operation', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    refusals: counter(
      'gateway_refusals_total',
      'Requests refused before they were read: not HTTP, or too slow.',
      'code',
    ),
    apiKeyLookUps: counter('gateway_key_look_ups_total', 'API keys looked up in the database.'),
    starts: counter('gateway_starts_total', 'Start requests by outcome.', 'kind'),
    startBatches: new Histogram({
      name: 'gateway_start_batch_size',
      help: 'Starts recorded by one statement.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128],
      registers,
    }),
    workflowDocuments: counter(
      'gateway_workflow_documents_total',
      'Workflows answered, by whether the document came from memory or from the database.',
      'from',
    ),
    sessionMessages: counter(
      'gateway_wake_ups_total',
      "Messages published to the session queue, by outcome; the runners' sweep makes up for failed ones.",
      'outcome',
    ),
    brokerUp: new Gauge({ name: 'gateway_broker_up', help: 'Whether the gateway can publish to RabbitMQ.', registers }),
    rateLimitStoreUp: new Gauge({
      name: 'gateway_rate_limit_store_up',
      help: 'Whether the shared rate limit store is connected; 1 when none is configured.',
      registers,
    }),
    rateLimitLocalDecisions: counter(
      'gateway_rate_limit_local_decisions_total',
      'Rate limit decisions that a gateway made alone because the shared store did not answer.',
    ),
  }
}

export type GatewayMetrics = ReturnType<typeof createGatewayMetrics>
