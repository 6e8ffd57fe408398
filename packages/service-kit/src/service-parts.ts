import { createLogger, describeError, type Logger } from './logger.ts'
import { createMetrics, type Registry } from './metrics.ts'
import type { ServiceConfig } from './shared-settings.ts'
import { startTracing, type Tracing } from './tracing.ts'

/** What the context of every service begins with. */
export interface ServiceParts {
  readonly logger: Logger
  readonly metrics: Registry
  readonly tracing: Tracing
  /** For `createDatabase`; lost connections are logged. */
  readonly database: {
    readonly url: string
    readonly applicationName: string
    readonly maxConnections: number
    readonly onError: (error: Error) => void
  }
  /** Logs that open pages were not notified of a change. */
  readonly onNoticeError: (error: unknown) => void
}

/** Creates the parts of a service that has this name in its logs, metrics, traces and connections. */
export async function createServiceParts(
  service: string,
  config: Omit<ServiceConfig, 'host' | 'port'>,
  logger: Logger = createLogger({ service, level: config.logLevel }),
): Promise<ServiceParts> {
  return {
    logger,
    metrics: createMetrics(service),
    tracing: await startTracing({ ...config.tracing, service, logger }),
    database: {
      url: config.databaseUrl,
      applicationName: service,
      maxConnections: config.databasePoolSize,
      onError: (error) => logger.warn({ error: describeError(error) }, 'database.connection_lost'),
    },
    onNoticeError: (error) => logger.warn({ error: describeError(error) }, 'change_notice.send_failed'),
  }
}
