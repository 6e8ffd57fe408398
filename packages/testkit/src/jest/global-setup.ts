import { removeDeadRunFolders } from '@workflow-service/dev-servers'
import { announceControlUrl } from '../config.ts'
import { startInfrastructure, type Infrastructure } from './infrastructure.ts'

const KEY = Symbol.for('workflow-service.testkit.infrastructure')
const shared = globalThis as { [KEY]?: Infrastructure }

/**
 * Runs once before the tests. Starts the control server; PostgreSQL and RabbitMQ start when a test file asks for them.
 */
export default async function globalSetup(): Promise<void> {
  await removeDeadRunFolders()
  const infrastructure = await startInfrastructure((line) => process.stderr.write(`${line}\n`))
  shared[KEY] = infrastructure
  announceControlUrl(infrastructure.url)
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    // Jest runs no teardown on a signal. Exit hooks remove the folders, and the servers end with this process.
    process.once(signal, () => process.exit(status))
  }
}

/** Stops every server that this run has started. */
export async function stopInfrastructure(): Promise<void> {
  await shared[KEY]?.stop()
  delete shared[KEY]
}
