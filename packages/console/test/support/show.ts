import type { Page } from '@workflow-service/testkit/use-browser'

/** Opens a page and waits until it shows its heading and has read everything. */
export async function show(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await settle(page)
}

/** Waits until the page has read everything. */
export async function settle(page: Page): Promise<void> {
  await page.locator('.loading, [aria-busy="true"]').first().waitFor({ state: 'detached' })
}
