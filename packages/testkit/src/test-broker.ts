import { randomBytes } from 'node:crypto'
import { askForBroker } from './infrastructure-client.ts'
import { callManagement } from './rabbitmq.ts'

/** A virtual host that only one test file uses. */
export interface TestBroker {
  url: string
  /** True when the broker was given without management API: then the virtual host is shared with other runs. */
  managementless: boolean
  /** The management API, with credentials in the address; undefined when managementless. */
  managementUrl?: string
  /** The virtual host's name. */
  virtualHost: string
  /** Removes the virtual host with everything in it and closes its connections. */
  drop: () => Promise<void>
}

/**
 * Makes a virtual host through the management API, which takes about 50 ms. The first call of a Jest run starts the
 * broker: give `beforeAll` 180,000 ms.
 */
export async function createTestBroker(): Promise<TestBroker> {
  const server = await askForBroker()
  if (server.managementUrl === null) {
    const virtualHost = decodeURIComponent(new URL(server.url).pathname.slice(1)) || '/'
    return { url: server.url, managementless: true, virtualHost, drop: async () => {} }
  }
  const { managementUrl } = server
  const name = `${server.prefix}${randomBytes(6).toString('hex')}`
  await must(callManagement(managementUrl, 'PUT', `/api/vhosts/${name}`, {}))
  const user = decodeURIComponent(new URL(managementUrl).username)
  const all = { configure: '.*', write: '.*', read: '.*' }
  await must(callManagement(managementUrl, 'PUT', `/api/permissions/${name}/${encodeURIComponent(user)}`, all))
  const url = new URL(server.url)
  url.pathname = `/${name}`
  return {
    url: url.href,
    managementless: false,
    managementUrl,
    virtualHost: name,
    drop: async () => await must(callManagement(managementUrl, 'DELETE', `/api/vhosts/${name}`)),
  }
}

async function must(call: Promise<Response>): Promise<void> {
  const answer = await call
  if (!answer.ok && answer.status !== 404) {
    throw new Error(`RabbitMQ's management API answered ${answer.status}: ${await answer.text()}`)
  }
}
