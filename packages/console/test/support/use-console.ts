import { afterAll, beforeAll } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { type Console, startConsole } from './start-console.ts'

/** Starts the service for the test file that calls it. Using it outside of hooks and tests throws. */
export function useConsole(): Omit<Console, 'stop'> {
  const database = useTestDatabase()
  let started: Console | undefined
  beforeAll(async () => {
    started = await startConsole(database.db, database.url)
  }, 180_000)
  afterAll(async () => await started?.stop())
  const used = (): Console => {
    if (!started) throw new Error('The console exists only inside of hooks and tests')
    return started
  }
  return {
    get url() {
      return used().url
    },
    get db() {
      return used().db
    },
    get endpoint() {
      return used().endpoint
    },
    signIn: async (options) => await used().signIn(options),
  }
}
