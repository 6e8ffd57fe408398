import { expect, test } from '@jest/globals'
import { createSetupLink } from '@workflow-service/database'
import { type Locator, useBrowser } from '@workflow-service/testkit/use-browser'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

test('a stranger becomes owner, mends a source, starts a workflow, and finds and resends its delivery', async () => {
  const page = await browser.newPage({ baseURL: service.url, viewport: { width: 1280, height: 900 } })
  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const link = (name: string | RegExp) => page.getByRole('link', { name })
  const field = (name: string | RegExp) => page.getByRole('textbox', { name })
  const heading = (name: string | RegExp) => page.getByRole('heading', { name })

  // The printed link.
  await page.goto(`/setup#${await createSetupLink(service.db, null)}`)
  await field('Organization').fill('Acme')
  await field('Your name').fill('Ada Lovelace')
  await field('Email').fill('ada@acme.test')
  await page.getByLabel('Password').fill('seven calm turtles walk')
  await button('Create and sign in').click()
  await heading('Overview').waitFor()

  // A webhook source whose endpoint fails at first: nothing is saved, and the cause is at the field.
  service.endpoint.answerWith({ status: 500 })
  await link('Webhook sources').click()
  await link('New webhook source').click()
  await field('Name').fill('Order intake')
  await field('URL').fill(`${service.endpoint.url}/orders`)
  await button('Generate 32 bytes').click()
  await button('Verify and create').click()
  expect(await errorOf(field('URL'))).toContain('The endpoint answered 500 instead of 2xx.')
  service.endpoint.answerWith({ body: 'Order accepted.' })
  await button('Verify and create').click()
  await heading('Order intake').waitFor()
})

/** Waits until the field is invalid, and returns the text that describes it to a screen reader. */
async function errorOf(field: Locator): Promise<string> {
  const page = field.page()
  await field.and(page.locator('[aria-invalid="true"]')).waitFor()
  const id = await field.getAttribute('aria-describedby')
  return (await page.locator(`[id="${id}"]`).textContent()) ?? ''
}
