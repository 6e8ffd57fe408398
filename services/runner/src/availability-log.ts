import type { LogEvent, Logger } from '@workflow-service/service-kit'

export interface AvailabilityLog {
  reportUnavailable(details: object): void
  reportAvailable(): void
}

/**
 * Logs one line when a dependency becomes unavailable and one when it is available again, however many calls notice it.
 */
export function createAvailabilityLog(
  logger: Logger,
  events: { readonly unavailable: LogEvent; readonly available: LogEvent },
): AvailabilityLog {
  let isUnavailable = false
  return {
    reportUnavailable(details) {
      if (!isUnavailable) logger.warn(details, events.unavailable)
      isUnavailable = true
    },
    reportAvailable() {
      if (isUnavailable) logger.info(events.available)
      isUnavailable = false
    },
  }
}
