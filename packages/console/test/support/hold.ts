import type { Page } from '@workflow-service/testkit/use-browser'

/** Holds the requests to an address back, until what it returns is called. */
export async function hold(page: Page, url: Parameters<Page['route']>[0]): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  await page.route(url, async (route) => {
    await promise
    await route.fallback()
  })
  return resolve
}
