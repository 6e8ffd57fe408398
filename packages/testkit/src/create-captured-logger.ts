import { createLogger } from '@workflow-service/service-kit/logger'

/** A service's logger, and the lines that it has written. */
export type CapturedLogger = ReturnType<typeof createCapturedLogger>

/**
 * Creates the logger that services use, with redaction, and keeps its lines of all levels in memory.
 * @param options.service - the `service` field of each line; default `test`
 */
export function createCapturedLogger({ service = 'test' }: { service?: string } = {}) {
  const lines: Record<string, unknown>[] = []
  let text = ''
  const write = (line: string): void => {
    text += line
    lines.push(JSON.parse(line) as Record<string, unknown>)
  }
  return {
    logger: createLogger({ service, level: 'debug', destination: { write } }),
    /** The parsed lines, oldest first. */
    lines,
    /** The same lines as written, to search for text that must not appear in any of them. */
    get text() {
      return text
    },
  }
}
