import '@workflow-service/service-kit/compile-cache'
import { createTerminal } from '@workflow-service/cli/terminal'
import { createScreen } from './screen.ts'

const screen = createScreen(createTerminal())
const stopping = new AbortController()

/** One Ctrl-C arrives twice: the terminal sends it to this process too, and npm passes it on. */
const REPEATED_SIGNAL_MS = 500
let firstSignalMs = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!stopping.signal.aborted) {
      firstSignalMs = performance.now()
      screen.stopping()
      stopping.abort()
    } else if (performance.now() - firstSignalMs > REPEATED_SIGNAL_MS) {
      screen.error('Stopped at once. PostgreSQL recovers at the next start.')
      process.exit(130)
    }
  })
}
// When the reader of the output is gone (`npm start | head`), the stack keeps running.
/* oxlint-disable no-restricted-properties -- Writes nothing. */
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
/* oxlint-enable no-restricted-properties */

screen.title()
// Imported after the title is shown, because loading all services takes most of a second.
const { runLocalStack } = await screen.step('Loading', async () => await import('./run-local-stack.ts'))
process.exitCode = await runLocalStack(screen, stopping.signal)
