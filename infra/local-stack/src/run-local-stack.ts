import { EmbeddedPostgresError } from '@workflow-service/dev-servers'
import { SettingsError } from '@workflow-service/service-kit'
import { readLocalConfig } from './config.ts'
import { startLocalStack } from './local-stack.ts'
import { LocalStackError } from './local-stack-error.ts'
import type { Screen } from './screen.ts'

/** Runs the local stack until the signal aborts, or it cannot go on. Resolves to the exit status; never rejects. */
export async function runLocalStack(screen: Screen, stopping: AbortSignal): Promise<number> {
  let signal = stopping
  try {
    const config = readLocalConfig()
    if (config.isStartedByNpm) signal = AbortSignal.any([stopping, untilOrphaned()])
    const stack = await startLocalStack(config, screen, signal)
    const reason = await Promise.race([stack.failed, untilAborted(signal)])
    await stack.stop()
    if (reason !== undefined) screen.fault(reason)
    else screen.line('Stopped. npm start goes on from here.\n')
    return reason === undefined ? 0 : 1
  } catch (error) {
    if (signal.aborted) {
      screen.line('Stopped before it was up; nothing is left running.\n')
      return 130
    }
    screen.fault(describe(error))
    return 1
  }
}

async function untilAborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
}

const ORPHAN_CHECK_MS = 1_000

/** When npm is killed, nobody tells this process. */
function untilOrphaned(): AbortSignal {
  const orphaned = new AbortController()
  const parent = process.ppid
  setInterval(() => process.ppid === parent || orphaned.abort(), ORPHAN_CHECK_MS).unref()
  return orphaned.signal
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof LocalStackError || error instanceof EmbeddedPostgresError || error instanceof SettingsError) {
    return error.message
  }
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return 'No space is left on the disk: free some, then run npm start again.'
  return `It did not start: ${error.message}`
}
