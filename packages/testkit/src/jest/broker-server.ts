import { callManagementApi, startRabbitMq } from '@workflow-service/dev-servers'
import { readConfig } from '../config.ts'
import type { JestRun } from './jest-run.ts'

/** What a test file learns about the run's RabbitMQ. */
export interface BrokerServer {
  url: string
  /** The management API, with credentials in the address. */
  managementUrl: string
  /** What the names of this run's virtual hosts begin with. */
  prefix: string
}

/** The broker that `AMQP_URL` names, or a private node. */
export async function startBrokerServer({ id, log, atEnd }: JestRun): Promise<BrokerServer> {
  const prefix = `test-${id}-`
  const { amqpUrl, amqpManagementUrl } = readConfig()
  if (amqpUrl) return { url: amqpUrl, managementUrl: await findManagement(amqpUrl, amqpManagementUrl), prefix }
  const broker = await startRabbitMq({ log })
  atEnd(async () => await broker.stop())
  return { url: broker.url, managementUrl: broker.managementUrl, prefix }
}

/** Without it there are no virtual hosts, and test files would read each other's messages: that is refused. */
async function findManagement(amqpUrl: string, given?: string): Promise<string> {
  const { hostname, username, password } = new URL(amqpUrl)
  const url = given ?? `http://${username || 'guest'}:${password || 'guest'}@${hostname}:15672`
  let reason: string
  try {
    const answer = await callManagementApi(url, 'GET', '/api/overview')
    if (answer.ok) return url
    reason = `status ${answer.status}`
  } catch (error) {
    const { cause, message } = error as Error
    reason = cause instanceof Error ? cause.message : message
  }
  throw new Error(
    `The tests give each file a virtual host of its own, through the management API of the broker in AMQP_URL, and ` +
      `${new URL(url).origin} does not answer as that (${reason}): enable rabbitmq_management, say where it is with ` +
      'AMQP_MANAGEMENT_URL, or unset AMQP_URL and the tests start a broker themselves',
  )
}
