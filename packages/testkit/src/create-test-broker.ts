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
  const userPaths: string[] = []
  return {
    url: own.href,
    /** Creates a user who may read and write what the patterns match; returns the virtual host's URL as this user. */
    async createUser({ suffix = '', password = 'secret', write = '.*', read = '.*' }): Promise<string> {
      const name = encodeURIComponent(`${virtualHost}${suffix}`)
      userPaths.push(`/api/users/${name}`)
      await assertOk(callManagementApi(managementUrl, 'PUT', `/api/users/${name}`, { password, tags: '' }))
      const path = `/api/permissions/${virtualHost}/${name}`
      await assertOk(callManagementApi(managementUrl, 'PUT', path, { ...all, write, read }))
      return Object.assign(new URL(own), { username: name, password: encodeURIComponent(password) }).href
    },
    /** The management API, with credentials in the address. */
    managementUrl,
    /** The virtual host's name. */
    virtualHost,
    /** Deletes the virtual host, its queues and its connections, and its users. */
    drop: async () => {
      for (const path of [...userPaths, `/api/vhosts/${virtualHost}`]) {
        await assertOk(callManagementApi(managementUrl, 'DELETE', path))
      }
    },
  }
}

async function assertOk(call: Promise<Response>): Promise<void> {
  const response = await call
  if (!response.ok && response.status !== 404) {
    throw new Error(`RabbitMQ's management API answered ${response.status}: ${await response.text()}`)
  }
}
