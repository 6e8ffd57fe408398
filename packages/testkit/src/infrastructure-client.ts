import { readConfig } from './config.ts'
import type { BrokerServer } from './jest/broker-server.ts'
import type { DatabaseServer } from './jest/database-server.ts'

/** Asks the Jest run's control server, which starts the server on the first call. Rejects with its reason. */
export async function askForDatabase(): Promise<DatabaseServer> {
  return (await ask('/database')) as DatabaseServer
}

/** Like `askForDatabase`. The first call takes about 5 s, or a minute where RabbitMQ has to be installed. */
export async function askForBroker(): Promise<BrokerServer> {
  return (await ask('/broker')) as BrokerServer
}

async function ask(path: string): Promise<unknown> {
  const { controlUrl } = readConfig()
  if (!controlUrl) throw new Error('This works inside of Jest only: run "npm test", or jest with infra/jest.config.mjs')
  // One worker runs many test files: a connection kept from an earlier one may be closing just now.
  const answer = await fetch(controlUrl + path, { headers: { connection: 'close' } })
  if (!answer.ok) throw new Error(await answer.text())
  return await answer.json()
}
