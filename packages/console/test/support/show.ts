import type { Page } from '@workflow-service/testkit/use-browser'

/** Opens a page and waits until it shows its heading and has read everything. */
export async function show(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await settle(page)
}

/**
 * Shows another page as a link of the application does, which takes a fifth of the processor time of loading it; where
 * the application is not open yet, loads it. What the application has read within 5 s is shown at once and read again
 * when a change notice comes: wait for what a test has changed.
 */
export async function follow(page: Page, path: string): Promise<void> {
  if (!(await page.evaluate<boolean>(`'__TSR_ROUTER__' in globalThis`))) return await show(page, path)
  await navigate(page, path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await settle(page)
}

/** Opens another page of the application that is open. */
export async function navigate(page: Page, path: string): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    const stop = __TSR_ROUTER__.subscribe('onRendered', () => resolve(stop()))
    void __TSR_ROUTER__.navigate({ href: ${JSON.stringify(path)} })
  })`)
}

/** Waits until the page has read everything. */
export async function settle(page: Page): Promise<void> {
  await page.locator('.loading, [aria-busy="true"]').first().waitFor({ state: 'detached' })
}
