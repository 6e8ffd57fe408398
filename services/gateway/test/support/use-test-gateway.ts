import { afterAll, beforeAll } from '@jest/globals'
import { startTestGateway, type TestGateway } from './test-gateway.ts'

/**
 * Sets up a gateway for the test file, or for the `describe` block that calls it: started before its first test,
 * stopped after its last one. Its properties exist only inside of hooks and tests.
 */
export function useTestGateway(env: Record<string, string> = {}): TestGateway {
  const gateway = {} as TestGateway
  let started: TestGateway | undefined
  beforeAll(async () => {
    started = await startTestGateway(env)
    Object.assign(gateway, started)
  }, 60_000)
  afterAll(() => started?.stop())
  return gateway
}
