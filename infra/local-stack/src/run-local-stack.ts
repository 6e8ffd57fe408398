import { once } from 'node:events'
import { EmbeddedPostgresError, isAlive } from '@workflow-service/dev-servers'
import { SettingsError } from '@workflow-service/service-kit'
import { readLocalConfig } from './config.ts'
import { startLocalStack } from './local-stack.ts'
import { describeFileError, LocalStackError } from './local-stack-error.ts'
import type { Screen } from './screen.ts'

/** Runs the local stack until the signal aborts or PostgreSQL ends. Resolves to the exit status; never rejects. */
export async function runLocalStack(screen: Screen, stopping: AbortSignal): Promise<number> {
  let signal = stopping
  try {
    const config = readLocalConfig()
    if (config.isStartedByNpm) signal = AbortSignal.any([stopping, abortWhenOrphaned()])
    const stack = await startLocalStack(config, screen, signal)
    const stopped = signal.aborted ? undefined : once(signal, 'abort').then(() => undefined)
    const failure = await Promise.race([stack.postgresFailure, stopped])
    await stack.stop()
    if (failure === undefined) screen.line('Stopped. The data is kept; npm start continues with it.\n')
    else screen.error(failure)
    return failure === undefined ? 0 : 1
  } catch (error) {
    if (signal.aborted) {
      screen.line('Stopped during the start; nothing is left running.\n')
      return 130
    }
    screen.error(describeStartError(error))
    return 1
  }
}

const ORPHAN_CHECK_MS = 1_000

/**
 * Aborts when the parent process has ended: a killed npm sends no signal to its children. Windows keeps the id of an
 * ended parent.
 */
function abortWhenOrphaned(): AbortSignal {
  const orphaned = new AbortController()
  const parent = process.ppid
  setInterval(() => (process.ppid === parent && isAlive(parent)) || orphaned.abort(), ORPHAN_CHECK_MS).unref()
  return orphaned.signal
}

function describeStartError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isExplained = [LocalStackError, EmbeddedPostgresError, SettingsError].some((type) => error instanceof type)
  return isExplained ? error.message : `The start failed: ${describeFileError(error)}`
}
