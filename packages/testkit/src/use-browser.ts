import { afterAll, afterEach, beforeAll, expect } from '@jest/globals'
import { type Browser, type BrowserContext, type BrowserContextOptions, launchChromium } from './launch-chromium.ts'
import { collectProblems } from './page-problems.ts'

export { findAxeIssues } from './find-axe-issues.ts'
export type { BrowserContextOptions, Locator, Page } from './launch-chromium.ts'

/** The browser of a test file. Using it outside of hooks and tests throws. */
export type UsedBrowser = ReturnType<typeof useBrowser>

/**
 * Starts a Chromium for the test file, or for the `describe` block that calls it: before its first test, ended after
 * its last one. Imported as `@workflow-service/testkit/use-browser`, because `@jest/globals` cannot be loaded outside
 * of Jest.
 */
export function useBrowser() {
  let browser: Browser | undefined
  let opened: { context: BrowserContext; problems: readonly string[] }[] = []
  let expected: RegExp[] = []

  // The first run on a machine without Chromium installs it.
  beforeAll(async () => {
    browser = await launchChromium()
  }, 300_000)
  afterEach(async () => {
    const ended = opened
    const accepted = expected
    opened = []
    expected = []
    await Promise.all(ended.map(async ({ context }) => await context.close()))
    const problems = ended.flatMap((each) => each.problems)
    expect(problems.filter((problem) => !accepted.some((pattern) => pattern.test(problem)))).toEqual([])
  })
  afterAll(async () => await browser?.close())

  return {
    /**
     * Opens an empty page in a new context (no cookies, no cache), which is closed after the test. A page error, a
     * console error, a report of the Content Security Policy or a request to another host than loopback then fails the
     * test.
     */
    async newPage(options?: BrowserContextOptions) {
      if (!browser) throw new Error('The browser exists only inside of hooks and tests')
      // Without the frames of animations, pages take an eighth less processor time. The journeys show them.
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
      // Shorter than a test's time limit, so that the error names what the page did not show.
      context.setDefaultTimeout(20_000)
      opened.push({ context, problems: collectProblems(context) })
      return await context.newPage()
    },
    /** Accepts problems of the current test that match, such as console errors of a page whose server is stopped. */
    expectProblem: (pattern: RegExp) => void expected.push(pattern),
  }
}
