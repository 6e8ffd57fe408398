import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { close, listen, waitUntil } from '@workflow-service/testkit'

export type Router = Awaited<ReturnType<typeof startRouter>>

/**
 * Forwards each request of the public API to the cell of its API key.
 * @param fallbackUrl Gets the requests of unknown keys, and answers them with 401.
 */
export async function startRouter(fallbackUrl: string) {
  /** The gateway of each prefix of a key; null while its organization moves. */
  const cells = new Map<string, string | null>()
  const underWay = new Map<string, number>()
  const change = (prefix: string, by: 1 | -1): void => void underWay.set(prefix, (underWay.get(prefix) ?? 0) + by)

  const server = createServer((incoming, outgoing) => {
    const [, prefix = ''] = /^Bearer +(wfk_[^_]*)/i.exec(incoming.headers.authorization ?? '') ?? []
    const cell = cells.get(prefix)
    if (cell === null) return refuse(incoming, outgoing)
    change(prefix, 1)
    outgoing.once('close', () => change(prefix, -1))
    forward(incoming, outgoing, cell ?? fallbackUrl)
  })
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    /** Sends the requests with this prefix of a key to the gateway at this URL. */
    route: (prefix: string, gatewayUrl: string) => void cells.set(prefix, gatewayUrl),
    /** Answers 503 to further requests with this prefix, and waits for those under way. */
    async hold(prefix: string) {
      cells.set(prefix, null)
      await waitUntil(() => !underWay.get(prefix), { timeoutMs: 30_000 })
    },
    close: async () => await close(server),
  }
}

/** Passes a request on, on a connection of its own. Answers 503 if there is no response. */
export function forward(incoming: IncomingMessage, outgoing: ServerResponse, origin: string): void {
  const { method, headers, url = '' } = incoming
  const forwarded = request(new URL(url, origin), { method, headers, agent: false }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(outgoing)
  })
  forwarded.on('error', () => (outgoing.headersSent ? outgoing.destroy() : refuse(incoming, outgoing)))
  incoming.pipe(forwarded)
}

function refuse(incoming: IncomingMessage, outgoing: ServerResponse): void {
  incoming.resume()
  const error = { code: 'service_unavailable', message: 'The organization cannot be reached now. Repeat the request.' }
  outgoing.writeHead(503, { 'content-type': 'application/json', 'retry-after': '2' })
  outgoing.end(JSON.stringify({ error }))
}
