import '@workflow-service/service-kit/compile-cache'

// The reader of a pipe may close it early: `wf runs list | head`.
// oxlint-disable-next-line no-restricted-properties -- Writes nothing.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

const { runCli } = await import('./run-cli.ts')
process.exitCode = await runCli(process.argv.slice(2))
