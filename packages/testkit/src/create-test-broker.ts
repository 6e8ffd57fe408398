import { randomBytes } from 'node:crypto'
import { callManagementApi } from '@workflow-service/dev-servers'
import { askForBroker } from './infrastructure-client.ts'

/** A virtual host that only one test file uses. */
export interface TestBroker {
  url: string
  /** The management API, with credentials in the address. */
  managementUrl: string
  /** The virtual host's name, as the management API wants it. */
  virtualHost: string
  /** Removes the virtual host with everything in it and closes its connections. */
  drop: () => Promise<void>
}

/**
 * Makes a virtual host through the management API, which takes about 50 ms. The first call of a Jest run starts the
 * broker: give `beforeAll` 180,000 ms.
 */
export async function createTestBroker(): Promise<TestBroker> {
  const { managementUrl, prefix, url } = await askForBroker()
  const virtualHost = `${prefix}${randomBytes(6).toString('hex')}`
  await must(callManagementApi(managementUrl, 'PUT', `/api/vhosts/${virtualHost}`, {}))
  const user = new URL(url).username || 'guest'
  const all = { configure: '.*', write: '.*', read: '.*' }
  await must(callManagementApi(managementUrl, 'PUT', `/api/permissions/${virtualHost}/${user}`, all))
  const own = new URL(url)
  own.pathname = `/${virtualHost}`
  return {
    url: own.href,
    managementUrl,
    virtualHost,
    drop: async () => await must(callManagementApi(managementUrl, 'DELETE', `/api/vhosts/${virtualHost}`)),
  }
}

async function must(call: Promise<Response>): Promise<void> {
  const answer = await call
  if (!answer.ok && answer.status !== 404) {
    throw new Error(`RabbitMQ's management API answered ${answer.status}: ${await answer.text()}`)
  }
}
