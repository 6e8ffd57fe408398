import { randomUUID } from 'node:crypto'
import { expect, test } from '@jest/globals'
import type { Locator, Page } from '@workflow-service/testkit/use-browser'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

// What a person hears and where the focus is, who has a screen reader and a keyboard.
const { browser, open } = useConsole()

/** Waits until the live region of the page, or of the dialog above it, has this text. */
const announced = async (page: Page, text: string | RegExp) =>
  await page.locator('[data-announcements="true"]').getByText(text).waitFor({ state: 'attached' })
const hasFocus = async (page: Page, locator: Locator) => await locator.and(page.locator(':focus')).waitFor()
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

test('an error of the field with the focus is announced, and a dialog is described by what it does', async () => {
  browser.expectProblem(/422/)
  const { owner, page } = await open('/workflows/new')
  const name = page.getByRole('textbox', { name: 'Name' })
  await name.press('Enter')
  await announced(page, 'Required.')
  await hasFocus(page, name)

  await owner.call('createApiKey', { body: { id: randomUUID(), name: 'Shop', scopes: ['read'], expires_at: null } })
  await show(page, '/keys')
  await button(page, 'Revoke Shop').click()
  const text = await page.getByRole('dialog', { name: 'Revoke Shop?' }).getAttribute('aria-describedby')
  expect(await page.locator(`[id="${text}"]`).textContent()).toContain('This cannot be undone')
})
