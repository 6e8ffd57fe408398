import { callManagementApi, startRabbitMq } from '@workflow-service/dev-servers'
import { readConfig } from '../config.ts'

/** The RabbitMQ of this Jest run, as its test files use it. */
export interface BrokerServer {
  url: string
  /** With credentials. */
  managementUrl: string
}

/** Uses the broker in `AMQP_URL`, or starts a private node. */
export async function startBrokerServer(
  log: (line: string) => void,
): Promise<BrokerServer & { stop: () => Promise<void> }> {
  const { amqpUrl: url, amqpManagementUrl } = readConfig()
  if (!url) return await startRabbitMq({ log })
  return { url, managementUrl: await findManagement(url, amqpManagementUrl), stop: async () => {} }
}

/**
 * Rejects without a management API: it creates the virtual hosts that keep test files from reading each other's
 * messages.
 */
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
    `The tests give each file its own virtual host, through the management API of the broker in AMQP_URL, and ` +
      `${new URL(url).origin} is not one (${reason}): enable rabbitmq_management, set ` +
      'AMQP_MANAGEMENT_URL, or unset AMQP_URL, and the tests start a broker',
  )
}
