import { randomInt } from 'node:crypto'
import { createServer } from 'node:http'
import { close, listen } from '../loopback-server.ts'
import { startBrokerServer } from './broker-server.ts'
import { startDatabaseServer } from './database-server.ts'
import type { JestRun } from './jest-run.ts'

/** The servers of one Jest run. */
export type Infrastructure = Awaited<ReturnType<typeof startInfrastructure>>

/**
 * Starts the control server, from which test files request PostgreSQL (`/database`) and RabbitMQ (`/broker`). Each
 * starts at its first request, so a run of unit tests starts neither.
 */
export async function startInfrastructure(log: (line: string) => void) {
  const stops: (() => Promise<void>)[] = []
  const run: JestRun = { id: randomInt(1, 2 ** 31), log, atEnd: (stop) => void stops.push(stop) }
  const servers = new Map<string | undefined, ReturnType<typeof lazily>>([
    ['/database', lazily(async () => await startDatabaseServer(run))],
    ['/broker', lazily(async () => await startBrokerServer(run))],
  ])

  const server = createServer((request, response) => {
    const requested = servers.get(request.url)
    if (!requested) {
      response.writeHead(404).end()
      return
    }
    requested.get().then(
      (value) => response.end(JSON.stringify(value)),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  server.requestTimeout = 0
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await close(server)
      await Promise.allSettled([...servers.values()].map(async (lazy) => await lazy.started()))
      await Promise.all(stops.map(async (stop) => await stop()))
    },
  }
}

/** Starts a server at the first call of `get`, and only once. */
function lazily(start: () => Promise<object>) {
  let starting: Promise<object> | undefined
  return { get: () => (starting ??= start()), started: () => starting }
}
