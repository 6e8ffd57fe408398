import { afterAll, beforeAll } from '@jest/globals'
import {
  type BrowserContextOptions,
  type Page,
  type UsedBrowser,
  useBrowser,
} from '@workflow-service/testkit/use-browser'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { fill, type Filled } from './fill.ts'
import { show } from './show.ts'
import { type Console, type ConsoleOverrides, type SignedIn, startConsole } from './start-console.ts'

/** The owner of a new organization, and a page of the application that the owner sees. */
export interface Opened {
  readonly owner: SignedIn
  readonly page: Page
}

/** The service and the browser of a test file. */
export interface UsedConsole {
  readonly service: Omit<Console, 'stop'>
  readonly browser: UsedBrowser
  /** Signs in the owner of a new organization and shows a page; without a path, the page is empty. */
  readonly open: (path?: string, options?: BrowserContextOptions) => Promise<Opened>
  /** The same for an organization that has something of everything (`fill`). */
  readonly openFilled: (
    path?: string | ((filled: Filled) => string),
    options?: BrowserContextOptions,
  ) => Promise<Opened & Filled>
}

/** Starts the service and a browser for the test file that calls it. Using them outside of hooks and tests throws. */
export function useConsole(overrides?: ConsoleOverrides): UsedConsole {
  const database = useTestDatabase()
  const browser = useBrowser()
  let started: Console | undefined
  beforeAll(async () => {
    started = await startConsole(database.db, database.url, overrides)
  }, 180_000)
  afterAll(async () => await started?.stop())
  const used = (): Console => {
    if (!started) throw new Error('The console exists only inside of hooks and tests')
    return started
  }
  const service: Omit<Console, 'stop'> = {
    get url() {
      return used().url
    },
    get db() {
      return used().db
    },
    get endpoint() {
      return used().endpoint
    },
    get model() {
      return used().model
    },
    signIn: async (options) => await used().signIn(options),
  }
  const openAs = async (owner: SignedIn, path?: string, options?: BrowserContextOptions): Promise<Opened> => {
    const page = await browser.newPage({ ...owner.context, ...options })
    if (path !== undefined) await show(page, path)
    return { owner, page }
  }
  return {
    service,
    browser,
    open: async (path, options) => await openAs(await service.signIn(), path, options),
    async openFilled(path, options) {
      const owner = await service.signIn()
      const filled = await fill(service, owner)
      return { ...filled, ...(await openAs(owner, typeof path === 'function' ? path(filled) : path, options)) }
    },
  }
}
