import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'

export type { Logger } from 'pino'

/** Names whose values never reach a log, at any of the depths where our own lines put them. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'signing_secret',
  'signingSecret',
  'x-service-token',
  'key',
  'apiKey',
  'token',
])
const SECRET_DEPTH = 3

/**
 * JSON logs of one service, one line an event. Log plain values and our own errors only: an HTTP client's error, request
 * or options object carries secrets that no redaction reliably finds. What hangs on a child logger is not looked at.
 */
export function createLogger(options: { service: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        // Not pino's `redact`: with wildcards it takes 100 µs a line, as much as a request.
        log: (fields) => hideSecrets(fields, SECRET_DEPTH),
      },
    },
    ...(options.destination ? [options.destination] : []),
  )
}

/** The same fields, or a copy of them in which the secrets down to this depth are hidden. */
function hideSecrets<Fields extends object>(fields: Fields, depth: number): Fields {
  let copy: Record<string, unknown> | undefined
  for (const [name, value] of Object.entries(fields) as [string, unknown][]) {
    const shown = SECRET_NAMES.has(name) ? '[hidden]' : hideWithin(value, depth - 1)
    if (shown === value) continue
    copy ??= (Array.isArray(fields) ? [...fields] : { ...fields }) as Record<string, unknown>
    copy[name] = shown
  }
  return (copy as Fields | undefined) ?? fields
}

function hideWithin(value: unknown, depth: number): unknown {
  const isOpened = depth > 0 && typeof value === 'object' && value !== null && !(value instanceof Error)
  return isOpened ? hideSecrets(value, depth) : value
}

/** What a log line may say of an error: name, message, code and stack, and nothing that hangs on it. */
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
