#!/usr/bin/env node
import '@workflow-service/service-kit/compile-cache'

// The reader of a pipe may close it early: `wf runs list | head`. A disk may be full.
// oxlint-disable-next-line no-restricted-properties -- Writes nothing.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // oxlint-disable-next-line no-restricted-properties -- No text of others.
  if (code !== 'EPIPE') process.stderr.write(`Error: the output cannot be written: ${message}.\n`)
  process.exit(code === 'EPIPE' ? 0 : 1)
})

// npm and pnpm run a script in the folder of its package: files are named from where it was called.
const { INIT_CWD: calledFrom, npm_lifecycle_event: script } = process.env
if (script === 'wf' && calledFrom) process.chdir(calledFrom)

const { runCli } = await import('./run-cli.ts')
process.exitCode = await runCli(process.argv.slice(2))
