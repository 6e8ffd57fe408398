import { TRACESTATE_MAX_LENGTH, TRACESTATE_MAX_MEMBERS } from './limits.ts'

/** The position of a request in a trace: the headers of W3C Trace Context (contract README, "Trace context"). */
export interface TraceContext {
  /** 55 characters, version 00: `00-{trace id}-{parent id}-{flags}`. */
  readonly traceparent: string
  /** Data of tracing systems beyond it, at most 512 characters; null if there is none. */
  readonly tracestate: string | null
}

// A later version may have more after the four fields; they are read as those of version 00 (section 3.2.2).
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-.)/u
const TRACEPARENT_LENGTH = 55
/** More than a later version may need; Node accepts headers of up to 16 KiB. */
const TRACEPARENT_MAX_LENGTH = 512
/** `sampled`, and `random` of Trace Context Level 2. Other flags are reserved and must be sent as zero. */
const KNOWN_FLAGS = 0x03
const TRACESTATE_MEMBER =
  /^([a-z\d][\w\-*/@]{0,255})=[\u0020-\u002B\u002D-\u003C\u003E-\u007E]{0,255}[\u0021-\u002B\u002D-\u003C\u003E-\u007E]$/u

/**
 * Reads the trace context of a request's headers, with names in lower case. An invalid or repeated `traceparent` counts
 * as absent, and an invalid or too long `tracestate` is dropped (W3C Trace Context, section 3). Never throws.
 */
export function readTraceContext(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): TraceContext | null {
  const { traceparent } = headers
  if (typeof traceparent !== 'string' || traceparent.length > TRACEPARENT_MAX_LENGTH) return null
  const [, version, traceId, parentId, flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  if (version === undefined || (version === '00' && traceparent.length !== TRACEPARENT_LENGTH)) return null
  const knownFlags = (Number.parseInt(flags, 16) & KNOWN_FLAGS).toString(16).padStart(2, '0')
  return {
    traceparent: `00-${traceId}-${parentId}-${knownFlags}`,
    tracestate: readTracestate(headers['tracestate']),
  }
}

function readTracestate(header: string | string[] | undefined): string | null {
  const text = Array.isArray(header) ? header.join(',') : typeof header === 'string' ? header : ''
  if (text.length > TRACESTATE_MAX_LENGTH) return null
  // An empty list member is allowed.
  const members = text.split(',').map((member) => member.replaceAll(/^[ \t]+|[ \t]+$/gu, ''))
  const filled = members.filter((member) => member !== '')
  const keys = new Set(filled.map((member) => TRACESTATE_MEMBER.exec(member)?.[1]))
  const isValid = !keys.has(undefined) && keys.size === filled.length && filled.length <= TRACESTATE_MAX_MEMBERS
  return isValid && filled.length > 0 ? filled.join(',') : null
}

/** Returns the headers that continue the trace in another service; none without a context. */
export function toTraceHeaders(trace: TraceContext | null): Record<string, string> {
  if (trace === null) return {}
  const { traceparent, tracestate } = trace
  return tracestate === null ? { traceparent } : { traceparent, tracestate }
}
