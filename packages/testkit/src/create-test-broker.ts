import { randomBytes } from 'node:crypto'
import { callManagementApi } from '@workflow-service/dev-servers'
import { requestBrokerServer } from './infrastructure-client.ts'

/** A RabbitMQ virtual host that one test file owns. */
export interface TestBroker {
  url: string
  /** The management API, with credentials in the address. */
  managementUrl: string
  /** The virtual host's name. */
  virtualHost: string
  /** Deletes the virtual host, its queues and its connections. */
  drop: () => Promise<void>
}

/**
 * Creates a virtual host, in about 50 ms. The first call of a Jest run starts the broker and may have to install it:
 * give `beforeAll` 180,000 ms.
 */
export async function createTestBroker(): Promise<TestBroker> {
  const { managementUrl, url } = await requestBrokerServer()
  const virtualHost = `test-${randomBytes(8).toString('hex')}`
  await assertOk(callManagementApi(managementUrl, 'PUT', `/api/vhosts/${virtualHost}`, {}))
  const user = new URL(url).username || 'guest'
  const all = { configure: '.*', write: '.*', read: '.*' }
  await assertOk(callManagementApi(managementUrl, 'PUT', `/api/permissions/${virtualHost}/${user}`, all))
  const own = new URL(url)
  own.pathname = `/${virtualHost}`
  return {
    url: own.href,
    managementUrl,
    virtualHost,
    drop: async () => await assertOk(callManagementApi(managementUrl, 'DELETE', `/api/vhosts/${virtualHost}`)),
  }
}

async function assertOk(call: Promise<Response>): Promise<void> {
  const answer = await call
  if (!answer.ok && answer.status !== 404) {
    throw new Error(`RabbitMQ's management API answered ${answer.status}: ${await answer.text()}`)
  }
}
