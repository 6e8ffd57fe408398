import '@workflow-service/service-kit/compile-cache'
import { createTerminal } from '@workflow-service/cli/terminal'
import { createScreen } from './screen.ts'

const screen = createScreen(createTerminal())
const stopping = new AbortController()

/** From a terminal, one Ctrl-C may arrive twice: npm repeats it. */
const REPEATED_MS = 500
let firstSignalMs = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!stopping.signal.aborted) {
      firstSignalMs = performance.now()
      screen.stopping()
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

screen.title()
// Only now, since loading everything takes a moment.
const { runLocalStack } = await screen.step('Loading', async () => await import('./run-local-stack.ts'))
process.exitCode = await runLocalStack(screen, stopping.signal)
