// Loaded into a program by --import: it gets SIGINT the moment it has written a line with the text of INTERRUPT_AT.
// Whoever watches from outside may see the line when the program is long past it.

const { stdout, env } = process
const write = stdout.write.bind(stdout)
const text = env['INTERRUPT_AT'] ?? ''

stdout.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
  const isFlushed = write(chunk, ...(rest as []))
  if (String(chunk).includes(text)) process.kill(process.pid, 'SIGINT')
  return isFlushed
}
