import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'

export type { Logger } from 'pino'

/** Names whose values never reach a log, at any of the depths where our own lines put them. */
const SECRET_NAMES = ['authorization', 'signing_secret', 'signingSecret', 'x-service-token', 'key', 'apiKey', 'token']

/**
 * JSON logs of one service, one line an event. Log plain values and our own errors only: an HTTP client's error, request
 * or options object carries secrets that no redaction reliably finds.
 */
export function createLogger(options: { service: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: SECRET_NAMES.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
        censor: '[hidden]',
      },
    },
    ...(options.destination ? [options.destination] : []),
  )
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
