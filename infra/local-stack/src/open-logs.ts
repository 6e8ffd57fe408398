import { createWriteStream } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { createLogger, type Logger } from '@workflow-service/service-kit'
import type { LocalConfig } from './config.ts'
import { logsDir } from './local-settings.ts'
import { describeFileError } from './local-stack-error.ts'
import type { Screen } from './screen.ts'

const LOG_NAMES = ['postgres', 'dispatcher', 'runner', 'gateway', 'app'] as const
/** A log file larger than this is renamed to `NAME.log.1` at the next start; an older `NAME.log.1` is overwritten. */
const MAX_BYTES = 20_000_000

export type Loggers = Record<(typeof LOG_NAMES)[number], Logger>

/**
 * Opens a log file for PostgreSQL and each service. `stack` closes them. The first failed write is reported; later
 * lines are dropped.
 */
export async function openLogs(config: LocalConfig, screen: Screen, stack: AsyncDisposableStack): Promise<Loggers> {
  let isReported = false
  const onError = (error: Error) => {
    if (!isReported) {
      screen.error(`The logs cannot be written any more (${describeFileError(error)}). The service keeps running.`)
    }
    isReported = true
  }
  const loggers = await Promise.all(
    LOG_NAMES.map(async (service) => {
      const path = join(logsDir(config.localDir), `${service}.log`)
      const existing = await stat(path).catch(() => undefined)
      if (existing && existing.size > MAX_BYTES) await rename(path, `${path}.1`)
      const stream = createWriteStream(path, { flags: 'a', mode: 0o600 }).on('error', onError)
      stack.defer(async () => {
        stream.end()
        await finished(stream).catch(() => {})
      })
      return [service, createLogger({ service, level: config.logLevel, destination: stream })] as const
    }),
  )
  return Object.fromEntries(loggers) as Loggers
}
