import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { waitUntil } from '@workflow-service/dev-servers'

/** Listens on the port of loopback, or on a free one. Resolves to the port. */
export async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Closes the server and its connections. Calling it again does nothing. */
export async function close(server: Server & { closeAllConnections(): void }): Promise<void> {
  if (!server.listening) return
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

/** Returns a function that waits until the list has `count` requests and resolves to the first `count`. */
export function waitForRequestsIn<Request>(requests: readonly Request[], at: string) {
  return async (count: number, timeoutMs = 10_000): Promise<Request[]> => {
    const message = () => `${count} requests at ${at}; ${requests.length} arrived`
    await waitUntil(() => requests.length >= count, { timeoutMs, message })
    return requests.slice(0, count)
  }
}
