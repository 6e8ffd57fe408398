import { describe, expect, test } from '@jest/globals'
import { startCustomerEndpoint, waitUntil } from '../src/index.ts'
import { collectProblems, findAxeIssues, type Page, useBrowser } from '../src/use-browser.ts'

const browser = useBrowser()
/** For the tests that use a page again. */
let sharedSite: Awaited<ReturnType<typeof serve>> | undefined
const pages = new Set<Page>()

describe('the browser of a test file', () => {
  test('gives each page a new context, and finds nothing wrong with an accessible page', async () => {
    await using site = await serve('<button>Save</button>')
    const page = await browser.newPage()
    await page.goto(site.url)
    expect(await page.getByRole('button', { name: 'Save' }).isVisible()).toBe(true)
    expect(await findAxeIssues(page)).toEqual([])

    await page.context().addCookies([{ name: 'a', value: 'b', url: site.url }])
    const other = await browser.newPage()
    expect(await other.context().cookies()).toEqual([])
  })

  test.each(['a test', 'the next test'])('gives %s a page without cookies, stored values and routes', async () => {
    sharedSite ??= await serve('<button>Save</button>')
    const page = await browser.reusePage({ viewport: { width: 375, height: 800 } })
    await page.goto(sharedSite.url)
    expect(await page.getByRole('button', { name: 'Save' }).isVisible()).toBe(true)
    const state = await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, document.cookie, innerWidth]')
    expect(state).toEqual([{}, {}, '', 375])
    await page.evaluate(`localStorage.a = sessionStorage.a = document.cookie = 'a=b'`)
    await page.setViewportSize({ width: 800, height: 800 })
    await page.route('**', async (route) => await route.abort())
    pages.add(page)
  })

  test('gives the next test the page of the one before', async () => {
    await sharedSite?.[Symbol.asyncDispose]()
    pages.add(await browser.reusePage())
    expect(pages.size).toBe(1)
  })

  test('reports what axe finds, with the element', async () => {
    await using site = await serve('<img src="/picture.png">')
    const page = await browser.newPage()
    await page.goto(site.url)
    expect(await findAxeIssues(page)).toEqual([expect.stringMatching(/^image-alt: .*: img: /)])
  })

  test.each([
    ['an exception', '<script src="/throws.js"></script>', /^Page error: Error: from the page/],
    ['a console error', '<script src="/complains.js"></script>', /^a complaint$/],
    ['a report of the Content Security Policy', '<script>alert(1)</script>', /Content Security Policy/],
    ['a response of 500', '<img alt="" src="/fails">', /status of 500/],
    ['a request to another host', '<img alt="" src="http://other.invalid/">', /^Request to another host: http:/],
  ])('%s fails the test', async (_what, body, problem) => {
    browser.expectProblem(/./)
    await using site = await serve(body)
    const page = await browser.newPage()
    const problems = collectProblems(page.context())
    await page.goto(site.url)
    // Chromium reports some of them after the page has loaded.
    await waitUntil(() => {
      expect(problems).toContainEqual(expect.stringMatching(problem))
      return true
    })
  })
})

/** Serves one page with a strict policy. Unknown paths are 404, which is no problem of the page. */
async function serve(body: string) {
  const endpoint = await startCustomerEndpoint({
    answer: { status: 404 },
    paths: {
      '/': {
        headers: { 'content-type': 'text/html', 'content-security-policy': "default-src 'self'" },
        body: `<!doctype html><html lang="en"><title>A page</title><main><h1>Hello</h1>${body}</main></html>`,
      },
      '/throws.js': script('throw new Error("from the page")'),
      '/complains.js': script('console.error("a complaint")'),
      '/fails': { status: 500 },
    },
  })
  return { url: endpoint.url, [Symbol.asyncDispose]: endpoint.close }
}

function script(text: string) {
  return { headers: { 'content-type': 'text/javascript' }, body: text }
}
