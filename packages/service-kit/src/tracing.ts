import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Span, SpanContext, TraceState } from '@opentelemetry/api'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { TraceContext } from '@workflow-service/contract'
import { describeError, type Logger } from './logger.ts'
import { withTimeout } from './with-timeout.ts'

/** The spans of one service. */
export interface Tracing {
  /** Whether spans are created. If not, `trace` only passes the parent on. */
  readonly isOn: boolean
  /**
   * Executes `work` in a span, and settles as it does. The span is a child of the one in which it is called, or else of
   * `parent`. It ends when `work` settles; an error that `work` throws does not mark it as failed.
   */
  trace<Result>(start: SpanStart, work: (span: ActiveSpan) => Promise<Result>): Promise<Result>
  /** Records a span that ends now. */
  record(start: SpanStart, durationMs: number): void
  /** The span in which this is called, for a request to another service; null outside of spans. */
  current(): TraceContext | null
  /** Exports the spans that have ended, for EXPORT_TIMEOUT_MS at most. Never rejects. */
  stop(): Promise<void>
}

export interface SpanStart {
  readonly name: string
  /** `server` for a request from another system, `client` for one to it, `producer` for a message. */
  readonly kind: 'internal' | 'server' | 'client' | 'producer'
  readonly attributes: SpanAttributes
  /** The span of another process that caused this one. */
  readonly parent?: TraceContext | null
  /** A UUID that becomes the id of the trace if there is no parent, so that several processes join the same trace. */
  readonly traceOf?: string
}

interface ActiveSpan {
  /**
   * What requests to other services carry. Without tracing, it is the parent: the caller's trace passes through
   * unchanged.
   */
  readonly context: TraceContext | null
  /** Renames the span, when its name was not known at its start. */
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /** Marks the span as failed. `errorType` is a stable code, not a message: messages may quote customers' data. */
  fail(errorType: string): void
}

/** Ids, counts and codes; never texts of customers or models, secrets or headers. Null is left out. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | null>>

export interface TracingOptions {
  /** The base URL of an OTLP/HTTP receiver; null creates no spans and loads no library. */
  readonly endpoint: string | null
  /** Headers of the requests to it. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * The share of the traces that begin in the service and are exported, 0 to 1. Others follow their caller's decision.
   */
  readonly sampleRatio: number
  readonly service: string
  readonly logger: Logger
}

/** The names that OpenTelemetry gives to the kinds. */
const KINDS = { internal: 'INTERNAL', server: 'SERVER', client: 'CLIENT', producer: 'PRODUCER' } as const

const NO_SPAN: ActiveSpan = { context: null, rename: () => {}, set: () => {}, fail: () => {} }

/** Creates no spans. */
export const NO_TRACING: Tracing = {
  isOn: false,
  trace: ({ parent }, work) => work(parent ? { ...NO_SPAN, context: parent } : NO_SPAN),
  record: () => {},
  current: () => null,
  stop: () => Promise.resolve(),
}

/** Spans that wait for their export at most, about 2 KiB each; further ones are dropped. */
const MAX_WAITING_SPANS = 2_048
/** The time for one export with its retries. It also bounds the flush of a service that stops. */
const EXPORT_TIMEOUT_MS = 2_000
/** Longer attribute values are cut: some come from the API of a model. */
const MAX_VALUE_LENGTH = 256
const WARNING_INTERVAL_MS = 60_000
/** A process that is killed loses the spans of this time. */
const EXPORT_INTERVAL_MS = 1_000

/**
 * Starts the export of spans in the background. When the receiver does not take them, they are dropped, and one warning
 * per minute is logged. No global tracer is registered, so no library adds spans of its own.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const { endpoint, headers, sampleRatio, service, logger } = options
  if (endpoint === null) return NO_TRACING
  const [
    { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace },
    { BatchSpanProcessor, ParentBasedSampler, RandomIdGenerator, TraceIdRatioBasedSampler, TracerProvider },
    { OTLPTraceExporter },
    { defaultResource, resourceFromAttributes },
  ] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  const exporter = new OTLPTraceExporter({
    // OTLP specification, "Endpoint URLs for OTLP/HTTP": the path of the signal is appended to the base URL.
    url: `${endpoint.replace(/\/+$/u, '')}/v1/traces`,
    headers,
    timeoutMillis: EXPORT_TIMEOUT_MS,
  })
  const ids = new RandomIdGenerator()
  let rootTraceId: string | undefined
  const names = resourceFromAttributes({ 'service.namespace': 'workflow-service', 'service.name': service })
  const limits = { maxQueueSize: MAX_WAITING_SPANS, scheduledDelayMillis: EXPORT_INTERVAL_MS }
  const provider = new TracerProvider({
    resource: defaultResource().merge(names),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
    spanProcessors: [new BatchSpanProcessor({ exporter: withWarnings(exporter, logger), ...limits })],
    idGenerator: {
      generateTraceId: () => rootTraceId ?? ids.generateTraceId(),
      generateSpanId: () => ids.generateSpanId(),
    },
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
  })
  const tracer = provider.getTracer('@workflow-service/service-kit')
  const current = new AsyncLocalStorage<Span>()
  const parentOf = ({ parent, traceOf }: SpanStart): Context => {
    const local = current.getStore()
    if (local) return trace.setSpan(ROOT_CONTEXT, local)
    if (parent) return trace.setSpanContext(ROOT_CONTEXT, fromTraceContext(parent, createTraceState))
    // The SDK asks for an id of the trace, synchronously, exactly when there is no parent.
    if (traceOf !== undefined) rootTraceId = traceOf.replaceAll('-', '')
    return ROOT_CONTEXT
  }
  const startSpan = (start: SpanStart, startTime?: Date): Span => {
    const { name, kind, attributes } = start
    const context = parentOf(start)
    try {
      return tracer.startSpan(
        name,
        { kind: SpanKind[KINDS[kind]], attributes: withoutNulls(attributes), startTime },
        context,
      )
    } finally {
      rootTraceId = undefined
    }
  }
  return {
    isOn: true,
    current: () => {
      const span = current.getStore()
      return span ? toTraceContext(span) : null
    },
    record: (start, durationMs) => startSpan(start, new Date(Date.now() - durationMs)).end(),
    async trace(start, work) {
      const span = startSpan(start)
      const active: ActiveSpan = {
        context: toTraceContext(span),
        rename: (name) => void span.updateName(name),
        set: (added) => void span.setAttributes(withoutNulls(added)),
        fail: (errorType) => void span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR }),
      }
      try {
        return await current.run(span, () => work(active))
      } finally {
        span.end()
      }
    },
    // A failed export is logged where it fails; one that takes longer is abandoned.
    stop: () => withTimeout(provider.shutdown(), EXPORT_TIMEOUT_MS).catch(() => {}),
  }
}

function fromTraceContext(
  { traceparent, tracestate }: TraceContext,
  parseState: (text: string) => TraceState,
): SpanContext {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate === null ? {} : { traceState: parseState(tracestate) }),
  }
}

function toTraceContext(span: Span): TraceContext {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext()
  const flags = traceFlags.toString(16).padStart(2, '0')
  return { traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: traceState?.serialize() || null }
}

/** Logs failed exports: the SDK reports them to its own global logger only. */
function withWarnings(exporter: SpanExporter, logger: Logger): SpanExporter {
  let warnedMs = -Infinity
  return {
    export: (spans, onResult) =>
      exporter.export(spans, (result) => {
        if (result.error && performance.now() - warnedMs >= WARNING_INTERVAL_MS) {
          warnedMs = performance.now()
          const { name, message, code } = describeError(result.error)
          logger.warn({ spans: spans.length, error: { name, message, code } }, 'span.export_failed')
        }
        onResult(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}

function withoutNulls(attributes: SpanAttributes): Record<string, string | number | boolean | string[]> {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) =>
      value === null ? [] : [[name, typeof value === 'object' ? [...value] : value] as const],
    ),
  )
}

/**
 * Reads `OTEL_EXPORTER_OTLP_HEADERS`, such as `api-key=abc,tenant=a%20b` (OTLP exporter specification, "Specifying
 * headers via environment variables").
 * @throws Error without the value, which may be a secret.
 */
export function parseOtlpHeaders(text: string): Record<string, string> {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '')
  try {
    const headers = pairs.map((pair) => {
      const [, name = '', value = ''] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=(.*)$/u.exec(pair) ?? []
      return [name, decodeURIComponent(value.trim())] as const
    })
    // Checks names and values as the request will.
    return Object.fromEntries(new Headers(headers.map(([name, value]): [string, string] => [name, value])))
  } catch {
    throw new Error('must be pairs of name=value with percent-encoded values, separated by commas')
  }
}
