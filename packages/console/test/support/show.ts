import type { Page } from '@workflow-service/testkit/use-browser'

/** Opens a page and waits until it shows its heading and has read everything. */
export async function show(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await settle(page)
}

/**
 * Shows a page as a link of the application does, which takes half the processor time of loading it: the first page of
 * a browser is loaded.
 */
export async function follow(page: Page, path: string): Promise<void> {
  if (page.url() === 'about:blank') return await show(page, path)
  await page.evaluate(`new Promise((resolve) => {
    const stop = __TSR_ROUTER__.subscribe('onRendered', () => resolve(stop()))
    void __TSR_ROUTER__.navigate({ href: ${JSON.stringify(path)} })
  })`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await settle(page)
}

/** Waits until the page has read everything. */
export async function settle(page: Page): Promise<void> {
  await page.locator('.loading, [aria-busy="true"]').first().waitFor({ state: 'detached' })
}
