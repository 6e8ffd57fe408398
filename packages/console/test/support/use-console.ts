import { afterAll, beforeAll } from '@jest/globals'
import { type PageOptions, useBrowser } from '@workflow-service/testkit/use-browser'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { fill, type Filled } from './fill.ts'
import { show } from './show.ts'
import { type Console, type SignedIn, startConsole } from './start-console.ts'

/** Starts the service and a browser for the test file that calls it, which has them in its hooks and tests. */
export function useConsole() {
  const database = useTestDatabase()
  const browser = useBrowser()
  const service = {} as Console
  beforeAll(async () => void Object.assign(service, await startConsole(database.db, database.url)))
  afterAll(async () => await service.stop?.())
  const openAs = async (owner: SignedIn, path?: string, options?: PageOptions) => {
    const page = await browser.reusePage({ ...owner.context, ...options })
    if (path !== undefined) await show(page, path)
    return { owner, page }
  }
  return {
    service,
    browser,
    /** Signs in the owner of a new organization and shows a page; without a path, the page is empty. */
    open: async (path?: string, options?: PageOptions) => await openAs(await service.signIn(), path, options),
    /** The same for an organization that has something of everything (`fill`). */
    openFilled: async (path?: string | ((filled: Filled) => string), options?: PageOptions) => {
      const owner = await service.signIn()
      const filled = await fill(service, owner)
      return { ...filled, ...(await openAs(owner, typeof path === 'function' ? path(filled) : path, options)) }
    },
  }
}
