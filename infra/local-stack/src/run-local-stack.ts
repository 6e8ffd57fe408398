import { EmbeddedPostgresError, isAlive } from '@workflow-service/dev-servers'
import { SettingsError } from '@workflow-service/service-kit'
import { readLocalConfig } from './config.ts'
import { startLocalStack } from './local-stack.ts'
import { LocalStackError } from './local-stack-error.ts'
import type { Screen } from './screen.ts'

/** Runs the local stack until the signal aborts or PostgreSQL ends. Resolves to the exit status; never rejects. */
export async function runLocalStack(screen: Screen, stopping: AbortSignal): Promise<number> {
  let signal = stopping
  try {
    const config = readLocalConfig()
    if (config.isStartedByNpm) signal = AbortSignal.any([stopping, abortWhenOrphaned()])
    const stack = await startLocalStack(config, screen, signal)
    const failure = await Promise.race([stack.postgresFailure, untilAborted(signal)])
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

async function untilAborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
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
  if (error instanceof LocalStackError || error instanceof EmbeddedPostgresError || error instanceof SettingsError) {
    return error.message
  }
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return 'No space is left on the disk. Free some, then run npm start again.'
  }
  return `The start failed: ${error.message}`
}
