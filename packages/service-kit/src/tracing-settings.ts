import { Type } from 'typebox'
import { parseOtlpHeaders, type TracingOptions } from './tracing.ts'

/** The schemas of the settings of tracing, the same for every service. */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.Optional(
    Type.String({
      format: 'http-url',
      description:
        'The base URL of an OpenTelemetry receiver (OTLP/HTTP, JSON) for traces of requests, runs and deliveries, without their texts; without it, no library for them is loaded.',
      examples: ['http://otel-collector:4318'],
    }),
  ),
  OTEL_EXPORTER_OTLP_HEADERS: Type.String({
    writeOnly: true,
    default: '',
    description:
      'Headers of the requests to OTEL_EXPORTER_OTLP_ENDPOINT: name=value, separated by commas, values percent-encoded.',
    examples: ['api-key=abc'],
  }),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({
    minimum: 0,
    maximum: 1,
    default: 1,
    description:
      'The share of the traces that begin here and are exported. Requests with a traceparent follow its sampled flag.',
    examples: [0.1],
  }),
}

export const tracingParsers = { OTEL_EXPORTER_OTLP_HEADERS: parseOtlpHeaders }

/** What `startTracing` takes from the settings. */
export type TracingConfig = Pick<TracingOptions, 'endpoint' | 'headers' | 'sampleRatio'>

export function toTracingConfig(settings: {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string
  readonly OTEL_EXPORTER_OTLP_HEADERS: TracingConfig['headers']
  readonly OTEL_TRACES_SAMPLER_ARG: number
}): TracingConfig {
  return {
    endpoint: settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    headers: settings.OTEL_EXPORTER_OTLP_HEADERS,
    sampleRatio: settings.OTEL_TRACES_SAMPLER_ARG,
  }
}
