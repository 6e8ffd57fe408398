import { removeDeadRunFolders } from '@workflow-service/dev-servers'
import { CONTROL_URL } from '../request-server.ts'
import { startInfrastructure } from './infrastructure.ts'

/** Stops every server that this run has started. */
export let stopInfrastructure = async (): Promise<void> => {}

/**
 * Runs once before the tests. Starts the control server; PostgreSQL and RabbitMQ start when a test file asks for them.
 */
export default async function globalSetup(): Promise<void> {
  await removeDeadRunFolders()
  const { url, stop } = await startInfrastructure()
  process.env[CONTROL_URL] = url
  stopInfrastructure = stop
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    // Jest runs no teardown on a signal. Exit hooks remove the folders, and the servers end with this process.
    process.once(signal, () => process.exit(status))
  }
}
