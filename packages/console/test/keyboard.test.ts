import { expect, test } from '@jest/globals'
import { type Locator, useBrowser } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()
const MAX_TABS = 80

/** Presses Tab until the element has the focus, as a person does who uses no pointer. */
async function tabTo(target: Locator): Promise<void> {
  const page = target.page()
  await target.waitFor()
  const focused = target.and(page.locator(':focus'))
  for (let presses = 0; presses < MAX_TABS && (await focused.count()) === 0; presses += 1)
    await page.keyboard.press('Tab')
  expect(await focused.count()).toBe(1)
}

test('the keyboard alone starts a workflow, resends its delivery, and reads the log', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  const { keyboard } = page
  await show(page, `/workflows/${workflowId}/try`)

  await tabTo(page.getByRole('textbox', { name: 'Text' }))
  await keyboard.type('order_id: A-1003')
  await keyboard.press('Control+Enter')
  await tabTo(page.getByRole('link', { name: 'Open the delivery' }))
  await keyboard.press('Enter')

  await tabTo(page.getByRole('button', { name: 'Send again' }))
  const before = page.url()
  await keyboard.press('Enter')
  await tabTo(page.getByRole('dialog', { name: /^Send again to/ }).getByRole('button', { name: 'Send again' }))
  await keyboard.press('Enter')
  await page.waitForURL((url) => url.href !== before)

  await tabTo(page.getByRole('link', { name: 'Logs of Order intake' }))
  await keyboard.press('Enter')
  await page.getByRole('rowheader').first().waitFor()
  await keyboard.press('j')
  await keyboard.press('Enter')
  const drawer = page.getByRole('dialog', { name: 'Delivery to Order intake' })
  await drawer.waitFor()
  await keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  expect(await page.getByRole('rowheader').first().getByRole('link').and(page.locator(':focus')).count()).toBe(1)
}, 120_000)
