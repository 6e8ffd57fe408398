import type { Page } from '@workflow-service/testkit/use-browser'

/** Loses the response to the next change at an address: the server does what is asked, and the page is not answered. */
export async function loseResponse(page: Page, url: string): Promise<void> {
  let isLost = false
  await page.route(url, async (route) => {
    if (isLost || route.request().method() === 'GET') return await route.fallback()
    isLost = true
    // A request of the test has no header by which the application knows its own page.
    await route.fetch({ headers: { ...route.request().headers(), 'sec-fetch-site': 'same-origin' } })
    await route.abort()
  })
}
