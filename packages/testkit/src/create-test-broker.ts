import { randomBytes } from 'node:crypto'
import { callManagementApi } from '@workflow-service/dev-servers'
import { requestServer } from './request-server.ts'

/** A RabbitMQ virtual host that one test file owns. */
export type TestBroker = Awaited<ReturnType<typeof createTestBroker>>

/**
 * Creates a virtual host, in about 50 ms. The first call of a Jest run starts the broker and may have to install it:
 * give `beforeAll` 180,000 ms.
 */
export async function createTestBroker() {
  const { managementUrl, url } = await requestServer('broker')
  const virtualHost = `test-${randomBytes(8).toString('hex')}`
  await assertOk(callManagementApi(managementUrl, 'PUT', `/api/vhosts/${virtualHost}`, {}))
  const user = new URL(url).username || 'guest'
  const all = { configure: '.*', write: '.*', read: '.*' }
  await assertOk(callManagementApi(managementUrl, 'PUT', `/api/permissions/${virtualHost}/${user}`, all))
  const own = new URL(url)
  own.pathname = `/${virtualHost}`
  return {
    url: own.href,
    /** The management API, with credentials in the address. */
    managementUrl,
    /** The virtual host's name. */
    virtualHost,
    /** Deletes the virtual host, its queues and its connections. */
    drop: async () => await assertOk(callManagementApi(managementUrl, 'DELETE', `/api/vhosts/${virtualHost}`)),
  }
}

async function assertOk(call: Promise<Response>): Promise<void> {
  const answer = await call
  if (!answer.ok && answer.status !== 404) {
    throw new Error(`RabbitMQ's management API answered ${answer.status}: ${await answer.text()}`)
  }
}
