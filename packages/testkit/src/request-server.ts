// Types only: a test file should not load what starts the servers.
import type { Servers } from './jest/infrastructure.ts'

/** The variable with the URL of this Jest run's control server, for the workers. */
export const CONTROL_URL = 'WORKFLOW_SERVICE_TESTKIT_URL'

/**
 * Gets a server of this Jest run from the control server, which starts it at the first call: RabbitMQ in about 5 s, or
 * a minute if it has to be installed.
 */
export async function requestServer<Name extends keyof Servers>(
  name: Name,
): Promise<Omit<Awaited<ReturnType<Servers[Name]>>, 'stop'>> {
  const controlUrl = process.env[CONTROL_URL]
  if (!controlUrl)
    throw new Error(
      'Test databases and brokers exist inside of Jest only: run "npm test", or jest with infra/jest.config.mjs',
    )
  // A worker runs many test files, and the server may be closing the connection that an earlier one left open.
  const response = await fetch(`${controlUrl}/${name}`, { headers: { connection: 'close' } })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as Awaited<ReturnType<Servers[Name]>>
}
