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
    const error = await listenError(port)
    if (error === undefined) return port
    if (error.code !== 'EADDRINUSE') throw error
  }
}

/** Resolves to the error of listening on the port of 127.0.0.1; undefined if it is free, or 0. */
export async function listenError(port: number): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  server.close()
  await once(server, 'close')
  return undefined
}
