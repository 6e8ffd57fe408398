import { afterEach } from '@jest/globals'
import { startStubModelServer, type StubModelServer } from './start-stub-model-server.ts'

/**
 * Returns a `startStubModelServer` whose servers are closed after each test. Imported as
 * `@workflow-service/testkit/use-stub-model`, as `useTestDatabase` is.
 */
export function useStubModel(): typeof startStubModelServer {
  const servers: StubModelServer[] = []
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()))
  })
  return async (options) => {
    const server = await startStubModelServer(options)
    servers.push(server)
    return server
  }
}
