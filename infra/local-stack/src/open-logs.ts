import { createLogger, type Logger } from '@workflow-service/service-kit'
import type { LocalConfig } from './config.ts'
import { logsDir } from './local-settings.ts'
import { describeFileError } from './local-stack-error.ts'
import { openLogFile } from './log-file.ts'
import type { Screen } from './screen.ts'

const LOG_NAMES = ['postgres', 'dispatcher', 'runner', 'gateway', 'app'] as const

export type Loggers = Record<(typeof LOG_NAMES)[number], Logger>

/** Opens a log file for PostgreSQL and each service. `stack` closes them. */
export async function openLogs(config: LocalConfig, screen: Screen, stack: AsyncDisposableStack): Promise<Loggers> {
  const dir = logsDir(config.localDir)
  let isReported = false
  const onError = (error: Error) => {
    if (!isReported) {
      screen.error(`The logs cannot be written any more (${describeFileError(error)}). The service keeps running.`)
    }
    isReported = true
  }
  const loggers = await Promise.all(
    LOG_NAMES.map(async (service) => {
      const file = await openLogFile(dir, service, onError)
      stack.defer(async () => await file.close())
      return [service, createLogger({ service, level: config.logLevel, destination: file.stream })] as const
    }),
  )
  return Object.fromEntries(loggers) as Loggers
}
