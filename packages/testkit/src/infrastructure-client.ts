import { readConfig } from './config.ts'
import type { BrokerServer } from './jest/broker-server.ts'
import type { DatabaseServer } from './jest/database-server.ts'

/** Gets this Jest run's PostgreSQL from the control server, which starts it at the first call. */
export async function requestDatabaseServer(): Promise<DatabaseServer> {
  return (await request('/database')) as DatabaseServer
}

/** Like `requestDatabaseServer`. The first call takes about 5 s, or a minute if RabbitMQ has to be installed. */
export async function requestBrokerServer(): Promise<BrokerServer> {
  return (await request('/broker')) as BrokerServer
}

async function request(path: string): Promise<unknown> {
  const { controlUrl } = readConfig()
  if (!controlUrl)
    throw new Error(
      'Test databases and brokers exist inside of Jest only: run "npm test", or jest with infra/jest.config.mjs',
    )
  // A worker runs many test files, and the server may be closing the connection that an earlier one left open.
  const answer = await fetch(controlUrl + path, { headers: { connection: 'close' } })
  if (!answer.ok) throw new Error(await answer.text())
  return await answer.json()
}
