import type { Logger } from '@workflow-service/service-kit'

export interface AvailabilityLog {
  reportUnavailable(details: object): void
  reportAvailable(): void
}

/** Logs one line when a dependency becomes unavailable and one when it is available again, however many calls notice it. */
export function createAvailabilityLog(
  logger: Logger,
  messages: { readonly unavailable: string; readonly available: string },
): AvailabilityLog {
  let isUnavailable = false
  return {
    reportUnavailable(details) {
      if (!isUnavailable) logger.warn(details, messages.unavailable)
      isUnavailable = true
    },
    reportAvailable() {
      if (isUnavailable) logger.info(messages.available)
      isUnavailable = false
    },
  }
}
