import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Linux gives ports from 32768 on to outgoing connections. */
const LOWEST = 15_000
const HIGHEST = 32_767

/**
 * Finds a free TCP port on 127.0.0.1, outside the range of outgoing connections: none of them takes it before the
 * server starts or while it restarts. Prefer port 0 where the server reports which port it got.
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
