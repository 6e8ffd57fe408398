#!/usr/bin/env node
import '@workflow-service/service-kit/compile-cache'

// The reader of a pipe may close it early: `wf runs list | head`.
// oxlint-disable-next-line no-restricted-properties -- Writes nothing.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

// npm and pnpm run a script in the folder of its package: files are named from where it was called.
const { INIT_CWD: calledFrom, npm_lifecycle_event: script } = process.env
if (script === 'wf' && calledFrom) process.chdir(calledFrom)

const { runCli } = await import('./run-cli.ts')
process.exitCode = await runCli(process.argv.slice(2))
