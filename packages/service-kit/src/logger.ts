import { type DestinationStream, pino, stdTimeFunctions } from 'pino'
import type { LogEvent } from './log-events.ts'

type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Writes one line: its fields and its event, the line's `msg`. Texts are in the fields. */
interface WriteLine {
  (fields: object, event: LogEvent): void
  (event: LogEvent): void
}

/** The JSON logger of one service. It takes the events of `LOG_EVENTS` only. */
export interface Logger extends Readonly<Record<LogLevel, WriteLine>> {
  isLevelEnabled(level: LogLevel): boolean
}

/** Fields whose values are never logged. */
const TOKEN_NAMES = ['authorization', 'x-service-token', 'key', 'apiKey', 'token']
const SECRET_NAMES: ReadonlySet<string> = new Set([...TOKEN_NAMES, 'signing_secret', 'signingSecret'])
/** How deep our log lines nest such fields. */
const REDACT_DEPTH = 3

/**
 * Creates the JSON logger of one service. Log plain values and `describeError` only: the error, request and options
 * objects of an HTTP client contain secrets in places that this redaction does not reach, and so may the bindings of a
 * child logger.
 */
export function createLogger(options: { service: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        // Pino's own `redact` with wildcards costs as much as a request.
        log: (fields) => redactFields(fields, REDACT_DEPTH),
      },
    },
    ...(options.destination ? [options.destination] : []),
  )
}

/** Returns the same fields, or a copy without the secrets down to this depth. */
function redactFields<Fields extends object>(fields: Fields, depth: number): Fields {
  let copy: Record<string, unknown> | undefined
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    const redacted = SECRET_NAMES.has(name) ? '[hidden]' : redactValue(value, depth - 1)
    if (redacted === value) continue
    copy ??= (Array.isArray(fields) ? [...fields] : { ...fields }) as Record<string, unknown>
    copy[name] = redacted
  }
  return (copy as Fields | undefined) ?? fields
}

function redactValue(value: unknown, depth: number): unknown {
  const isNested = depth > 0 && typeof value === 'object' && value !== null && !(value instanceof Error)
  return isNested ? redactFields(value, depth) : value
}

/** Returns what a log line may contain of an error: name, message, code and stack, but no other property. */
export function describeError(error: unknown): { name: string; message: string; code?: string; stack?: string } {
  if (!(error instanceof Error)) return { name: 'NonError', message: String(error) }
  const code = (error as { code?: unknown }).code
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.stack ? { stack: error.stack } : {}),
  }
}
