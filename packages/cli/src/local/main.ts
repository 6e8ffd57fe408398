import { SettingsError } from '@workflow-service/service-kit'
import { EmbeddedPostgresError } from '@workflow-service/database/embedded-postgres'
import { createTerminal } from '../terminal.ts'
import { readLocalConfig } from './config.ts'
import { startLocalStack } from './local-stack.ts'
import { LocalStackError } from './local-stack-error.ts'
import { createScreen } from './screen.ts'

const terminal = createTerminal()
const screen = createScreen(terminal)
const stopping = new AbortController()

/** From a terminal, one Ctrl-C may arrive twice: npm repeats it. */
const REPEATED_MS = 500
let firstSignalMs = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!stopping.signal.aborted) {
      firstSignalMs = performance.now()
      stopping.abort()
    } else if (performance.now() - firstSignalMs > REPEATED_MS) {
      screen.fault('Stopped at once. PostgreSQL recovers by itself at the next start.')
      process.exit(130)
    }
  })
}
// Whoever reads the output may be gone; the stack is not there for its output alone.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})

process.exitCode = await runLocalStack()

async function runLocalStack(): Promise<number> {
  try {
    const config = readLocalConfig()
    if (config.isStartedByNpm) stopWithParent()
    screen.title()
    const stack = await startLocalStack(config, screen, stopping.signal)
    const reason = await Promise.race([stack.failed, untilStopping()])
    screen.line()
    screen.line('Stopping: what is under way ends first …')
    await stack.stop()
    if (reason !== undefined) screen.fault(reason)
    else screen.line('Stopped. npm start goes on from here.\n')
    return reason === undefined ? 0 : 1
  } catch (error) {
    if (stopping.signal.aborted) {
      screen.line('Stopped before it was up; nothing is left running.\n')
      return 130
    }
    screen.fault(describe(error))
    return 1
  }
}

async function untilStopping(): Promise<undefined> {
  if (stopping.signal.aborted) return
  await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve))
}

/** When npm is killed, nobody tells this process. */
function stopWithParent(): void {
  const parent = process.ppid
  setInterval(() => process.ppid === parent || stopping.abort(), 1_000).unref()
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
