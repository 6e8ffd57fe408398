import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that a system gives to outgoing connections (Linux: from 32768 on), so that none of them takes it. */
const LOWEST = 15_000
const HIGHEST = 32_767

/**
 * A TCP port on 127.0.0.1 that is free now, and that nobody gets by chance before it is used, or while its server is
 * restarted. Prefer port 0 wherever the program under test tells what it got.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST + 1)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false
    throw error
  }
  server.close()
  await once(server, 'close')
  return true
}
