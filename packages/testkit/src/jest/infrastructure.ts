import { createServer } from 'node:http'
import { close, listen } from '../loopback-server.ts'
import { startBrokerServer } from './broker-server.ts'
import { startDatabaseServer } from './database-server.ts'

/** The servers of one Jest run. */
export type Infrastructure = Awaited<ReturnType<typeof startInfrastructure>>

/**
 * Starts the control server, from which test files request PostgreSQL (`/database`) and RabbitMQ (`/broker`). Each
 * starts at its first request, so a run of unit tests starts neither.
 */
export async function startInfrastructure(log: (line: string) => void) {
  const started = new Map<string, Promise<{ stop: () => Promise<void> }>>()
  const server = createServer(({ url = '' }, response) => {
    const starting = started.get(url) ?? (url === '/database' ? startDatabaseServer() : startBrokerServer(log))
    started.set(url, starting)
    starting.then(
      // Without `stop`, which is no value of JSON.
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
      await Promise.all([...started.values()].map((starting) => starting.then(({ stop }) => stop()).catch(() => {})))
    },
  }
}
