import { afterAll, afterEach, beforeAll, expect } from '@jest/globals'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  launchChromium,
  type Page,
} from './launch-chromium.ts'

export { findAxeIssues } from './find-axe-issues.ts'
export type { BrowserContextOptions, Locator, Page } from './launch-chromium.ts'

/** An image: a document without scripts in every service with pages. */
const EMPTY_PATH = '/favicon.svg'

/** What can be changed of a page that is open. Without a viewport it has 1280 × 720 pixels. */
export type PageOptions = Pick<
  BrowserContextOptions,
  'baseURL' | 'colorScheme' | 'forcedColors' | 'reducedMotion' | 'storageState' | 'viewport'
>

interface Opened {
  readonly context: BrowserContext
  readonly page: Page
  readonly problems: string[]
  /** The `baseURL` of a page to use again, otherwise undefined. */
  readonly keptFor?: string | undefined
}

/**
 * Starts a Chromium for the test file, or for the `describe` block that calls it: before its first test, ended after
 * its last one; using it at another time throws. Imported as `@workflow-service/testkit/use-browser`, because
 * `@jest/globals` cannot be loaded outside of Jest.
 */
export function useBrowser() {
  let browser: Browser | undefined
  let opened: Opened[] = []
  let kept: Opened[] = []
  let expected: RegExp[] = []

  // The first run on a machine without Chromium installs it.
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterEach(async () => {
    const ended = opened
    const accepted = expected
    opened = []
    expected = []
    const problems = ended.flatMap((each) => each.problems)
    await Promise.all(
      ended.map(async (each) => {
        const isClean = each.keptFor !== undefined && (await clean(each).catch(() => false))
        if (isClean) kept.push(each)
        else await each.context.close()
      }),
    )
    expect(problems.filter((problem) => !accepted.some((pattern) => pattern.test(problem)))).toEqual([])
  })
  afterAll(async () => await browser?.close())

  async function open(options: BrowserContextOptions, keptFor?: string): Promise<Page> {
    if (!browser) throw new Error('The browser exists only inside of hooks and tests')
    // Without the frames of animations, pages take an eighth less processor time. The journeys show them.
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
    // Shorter than a test's time limit, so that the error names what the page did not show.
    context.setDefaultTimeout(20_000)
    const page = await context.newPage()
    opened.push({ context, page, problems: collectProblems(context), keptFor })
    return page
  }

  return {
    /**
     * Opens an empty page in a new context (no cookies, no cache), which is closed after the test. A page error, a
     * console error, a report of the Content Security Policy or a request to another host than loopback then fails the
     * test.
     */
    newPage: async (options: BrowserContextOptions = {}) => await open(options),
    /**
     * Opens a page as `newPage` does, or the one of an ended test with the same `baseURL`, without its cookies, stored
     * values, routes and emulated media, but with its cache. That takes half the processor time: Chromium has the
     * process and the compiled scripts. A test that installs a clock or an init script needs a new page.
     */
    async reusePage(options: PageOptions = {}): Promise<Page> {
      const { baseURL = '', storageState, viewport = null, ...media } = options
      const index = kept.findIndex(({ keptFor }) => keptFor === baseURL)
      const [found] = index < 0 ? [] : kept.splice(index, 1)
      if (!found) return await open(options, baseURL)
      opened.push(found)
      const { context, page } = found
      if (typeof storageState === 'object') await context.addCookies(storageState.cookies)
      await page.setViewportSize(viewport ?? { width: 1280, height: 720 })
      await page.emulateMedia({ colorScheme: null, forcedColors: null, reducedMotion: 'reduce', ...media })
      return page
    },
    /** Accepts problems of the current test that match, such as console errors of a page whose server is stopped. */
    expectProblem: (pattern: RegExp) => void expected.push(pattern),
  }
}

/** Removes what a test has left in a page. Resolves to whether that is possible. */
async function clean({ context, page, problems }: Opened): Promise<boolean> {
  const { origin, protocol } = new URL(page.url())
  if (context.pages().length > 1 || !protocol.startsWith('http')) return false
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  // Any document of the same origin: for another one, such as about:blank, Chromium starts a new process.
  await page.goto(`${origin}${EMPTY_PATH}`)
  await page.evaluate('localStorage.clear(); sessionStorage.clear()')
  await context.clearCookies()
  problems.length = 0
  return true
}

/** Chromium reports each response from 400 on as a console error. The pages under test handle those from 400 to 499. */
const EXPECTED_RESPONSE = /^Failed to load resource: the server responded with a status of 4\d\d /

/**
 * Collects what goes wrong in the pages of a context: exceptions that a page does not catch, console errors (which
 * include every report of the Content Security Policy), and requests to another host than loopback.
 */
export function collectProblems(context: BrowserContext): string[] {
  const problems: string[] = []
  context.on('weberror', (error) => problems.push(`Page error: ${error.error().stack ?? String(error.error())}`))
  context.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED_RESPONSE.test(message.text())) problems.push(message.text())
  })
  context.on('request', (request) => {
    if (!isLocal(request.url())) problems.push(`Request to another host: ${request.url()}`)
  })
  return problems
}

function isLocal(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return !protocol.startsWith('http') || ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
}
