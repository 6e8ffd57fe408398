/** The position of a request in a trace: the headers of W3C Trace Context (contract README, "Trace context"). */
export interface TraceContext {
  /** 55 characters, version 00: `00-{trace id}-{parent id}-{flags}`. */
  readonly traceparent: string
  /** Data of tracing systems beyond it, at most 512 characters; null if there is none. */
  readonly tracestate: string | null
}

/** Only a later version may have more after the four fields, which are read as those of version 00. */
const TRACEPARENT = /^(?!ff|00.{54})[\da-f]{2}-((?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16})-([\da-f]{2})(?:$|-)/u
/** `sampled`, and `random` of Trace Context Level 2. Other flags are reserved and must be sent as zero. */
const KNOWN_FLAGS = 0x03
/** What may be passed on as a header. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/u

/**
 * Reads the trace context of a request's headers, with names in lower case. An invalid or repeated `traceparent` counts
 * as absent, and a `tracestate` that cannot be stored or passed on is dropped. Never throws.
 */
export function readTraceContext(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): TraceContext | null {
  const { traceparent, tracestate: given } = headers
  const [, ids, flags = ''] = (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || []
  if (ids === undefined) return null
  const knownFlags = (Number.parseInt(flags, 16) & KNOWN_FLAGS).toString(16).padStart(2, '0')
  const tracestate = Array.isArray(given) ? given.join(',') : given
  const isUsable = typeof tracestate === 'string' && TRACESTATE.test(tracestate)
  return { traceparent: `00-${ids}-${knownFlags}`, tracestate: isUsable ? tracestate : null }
}

/** Returns the headers that continue the trace in another service; none without a context. */
export function toTraceHeaders(trace: TraceContext | null): Record<string, string> {
  if (trace === null) return {}
  const { traceparent, tracestate } = trace
  return tracestate === null ? { traceparent } : { traceparent, tracestate }
}
