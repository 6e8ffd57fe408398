import { createLogger, describeError, type Logger } from './logger.ts'
import { createMetrics } from './metrics.ts'
import type { ServiceConfig } from './shared-settings.ts'
import { startTracing } from './tracing.ts'

/** Creates what the context of every service begins with, under its name in logs, metrics, traces and connections. */
export async function createServiceParts(
  service: string,
  config: Omit<ServiceConfig, 'host' | 'port'>,
  logger: Logger = createLogger({ service, level: config.logLevel }),
) {
  return {
    logger,
    metrics: createMetrics(service),
    tracing: await startTracing({ ...config.tracing, service, logger }),
    /** For `createDatabase`; lost connections are logged. */
    database: {
      url: config.databaseUrl,
      applicationName: service,
      maxConnections: config.databasePoolSize,
      onError: (error: Error) => logger.warn({ error: describeError(error) }, 'database.connection_lost'),
    },
    /** Logs that open pages were not notified of a change. */
    onNoticeError: (error: unknown) => logger.warn({ error: describeError(error) }, 'change_notice.send_failed'),
  }
}
