import type { LogEvent, Logger } from '@workflow-service/service-kit'

export type AvailabilityLog = ReturnType<typeof createAvailabilityLog>

/**
 * Logs one line when a dependency becomes unavailable and one when it is available again, however many calls notice it.
 */
export function createAvailabilityLog(
  logger: Logger,
  events: { readonly unavailable: LogEvent; readonly available: LogEvent },
) {
  let isUnavailable = false
  return {
    reportUnavailable(details: object) {
      if (!isUnavailable) logger.warn(details, events.unavailable)
      isUnavailable = true
    },
    reportAvailable() {
      if (isUnavailable) logger.info(events.available)
      isUnavailable = false
    },
  }
}
