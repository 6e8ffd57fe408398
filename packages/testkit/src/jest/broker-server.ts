import { startRabbitMq } from '@workflow-service/dev-servers'
import { readConfig } from '../config.ts'

/** The RabbitMQ of this Jest run, as its test files use it. */
export interface BrokerServer {
  url: string
  /** Creates the virtual hosts that keep test files from reading each other's messages. With credentials. */
  managementUrl: string
}

/** Uses the broker in `AMQP_URL`, or starts a private node. */
export async function startBrokerServer(
  log: (line: string) => void,
): Promise<BrokerServer & { stop: () => Promise<void> }> {
  const { amqpUrl: url, amqpManagementUrl } = readConfig()
  if (!url) return await startRabbitMq({ log })
  const { hostname, username, password } = new URL(url)
  const managementUrl = amqpManagementUrl ?? `http://${username || 'guest'}:${password || 'guest'}@${hostname}:15672`
  return { url, managementUrl, stop: async () => {} }
}
