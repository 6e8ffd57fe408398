// Loaded with --import. Sends SIGINT to its own process as soon as it has written a line with the text of INTERRUPT_AT.
// A test that watched the output from outside would send the signal too late.

const { stdout, env } = process
const write = stdout.write.bind(stdout)
const text = env['INTERRUPT_AT'] ?? ''

stdout.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
  const isFlushed = write(chunk, ...(rest as []))
  if (String(chunk).includes(text)) process.kill(process.pid, 'SIGINT')
  return isFlushed
}
