import { removeDeadRunFolders } from '@workflow-service/dev-servers'
import { announceControlUrl } from '../config.ts'
import { startInfrastructure, type Infrastructure } from './infrastructure.ts'

const key = Symbol.for('workflow-service.testkit.infrastructure')
const shared = globalThis as { [key]?: Infrastructure }

/** Jest's global setup: once for each run. Nothing is started before a test file asks for it. */
export default async function globalSetup(): Promise<void> {
  await removeDeadRunFolders()
  const infrastructure = await startInfrastructure((line) => process.stderr.write(`${line}\n`))
  shared[key] = infrastructure
  announceControlUrl(infrastructure.url)
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    // Jest has no teardown on a signal. The exit hooks remove the folders, and the servers end with this process.
    process.once(signal, () => process.exit(status))
  }
}

/** Jest's global teardown: nothing that this run started is left running. */
export async function stopInfrastructure(): Promise<void> {
  await shared[key]?.stop()
  delete shared[key]
}
