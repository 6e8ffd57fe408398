import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Arrival } from '../../../services/runner/test/chaos/check-record.ts'

/** A payload and when its body was complete, in ms since 1970. */
export interface TimedArrival extends Arrival {
  readonly at: number
}

/** The endpoints of all customers. Keeps a path, a text and a time of each payload, so that hours of them fit in memory. */
export interface SoakEndpoint {
  readonly url: string
  readonly arrivals: readonly TimedArrival[]
  close(): void
}

/**
 * Answers by the last part of the path: `slow` after 1 to 3 s, `broken` with 500, 404, a reset connection or, rarely, never;
 * everything else with 204 within 100 ms.
 */
export async function startSoakEndpoint(): Promise<SoakEndpoint> {
  const arrivals: TimedArrival[] = []
  const server = createServer((request, response) => {
    answer(request, response, arrivals).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, arrivals: TimedArrival[]): Promise<void> {
  const { message: text } = (await json(request)) as { message: string }
  const path = request.url!
  arrivals.push({ path, text, at: Date.now() })
  const chance = hash(text) % 100
  const end = (status: number, afterMs: number): void =>
    void setTimeout(() => response.writeHead(status).end(), afterMs)
  if (path.endsWith('/slow')) end(204, 1_000 + 20 * chance)
  else if (!path.endsWith('/broken')) end(204, chance)
  else if (chance >= 25) end(500, chance)
  else if (chance >= 15) end(404, chance)
  else if (chance >= 1) request.socket.resetAndDestroy()
}

/** The same number for the same text. */
function hash(text: string): number {
  let value = 7
  for (const letter of text) value = (value * 31 + letter.charCodeAt(0)) % 10_007
  return value
}
