import { createLogger, type Logger } from '@workflow-service/service-kit/logger'

/** A service's logger, and the lines that it has written. */
export interface CapturedLogger {
  logger: Logger
  /** The parsed lines, oldest first. */
  lines: Record<string, unknown>[]
  /** The same lines as written, to search for text that must not appear in any of them. */
  readonly text: string
}

/**
 * Creates the logger that services use, with redaction, and keeps its lines in memory.
 * @param options.service - the `service` field of each line; default `test`
 * @param options.level - the lowest level that is written; default `debug`
 */
export function createCapturedLogger(options: { service?: string; level?: string } = {}): CapturedLogger {
  const { service = 'test', level = 'debug' } = options
  const lines: Record<string, unknown>[] = []
  let text = ''
  const write = (line: string): void => {
    text += line
    lines.push(JSON.parse(line) as Record<string, unknown>)
  }
  return {
    logger: createLogger({ service, level, destination: { write } }),
    lines,
    get text() {
      return text
    },
  }
}
