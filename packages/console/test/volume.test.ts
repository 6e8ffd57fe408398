import { expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { FAILED, fillVolume, NEEDLE } from './support/fill-volume.ts'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser } = useConsole()

test('an operator of 10,000 deliveries finds one order, sends all that were answered 500 again with 4 clicks, and has nothing left to do', async () => {
  const owner = await service.signIn()
  const { sourceIds } = await fillVolume(service, owner)
  service.endpoint.requests.length = 0
  const page = await browser.newPage(owner.context)
  await page.addInitScript(
    `addEventListener('click', ({ isTrusted }) => isTrusted && (sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0)), true)`,
  )
  const clicks = async () => Number(await page.evaluate('sessionStorage.clicks ?? 0'))
  await show(page, '/')

  // The order is found from everywhere, and sent again.
  await page.keyboard.press('Control+k')
  await page.keyboard.insertText(NEEDLE)
  await page.getByRole('option', { name: `order_id: ${NEEDLE}` }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Delivery to Order intake' }).waitFor()
  await page.getByRole('button', { name: 'Send again' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click()
  await page.getByRole('heading', { name: 'Resent delivery to Order intake' }).waitFor()
  await page.getByRole('status').filter({ hasText: 'Accepted' }).waitFor()
  await page.getByRole('link', { name: 'Overview' }).click()

  // All that the source answered with 500, faster than it offers at first.
  await page.getByText(`${FAILED} ×`).waitFor()
  const before = await clicks()
  await page.getByRole('button', { name: 'Send again: Order intake answered 500' }).click()
  const dialog = page.getByRole('dialog', { name: `Send ${FAILED} payloads again` })
  await dialog.getByText(`Order intake: ${FAILED}`).waitFor()
  await dialog.getByRole('combobox', { name: 'How fast' }).click()
  await page.getByRole('option', { name: '100 a second' }).click()
  await dialog.getByRole('button', { name: `Send ${FAILED} payloads again` }).click()
  await page.getByRole('status').getByText(`${FAILED} of ${FAILED}`).waitFor()
  const accepted = page.locator('dl > div').filter({ hasText: 'Accepted' })
  await accepted.getByText(`${FAILED}`, { exact: true }).waitFor()
  expect((await clicks()) - before).toBe(4)
  const orders = service.endpoint.requests.map(({ json }) => (json as { order_id: string }).order_id)
  expect([orders.length, new Set(orders).size]).toEqual([FAILED + 1, FAILED + 1])

  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByText('Nothing of the last 7 days needs attention.').waitFor()
  // The same by the list: what was sent again and accepted is not offered.
  await show(page, `/deliveries?source_id=${sourceIds[0]}&status=500`)
  await page.getByRole('button', { name: 'Send all again' }).click()
  await page.getByRole('dialog', { name: 'Nothing to send again' }).waitFor()
  await waitUntil(async () => (await owner.call('getOverview')).attention.length === 0)
}, 120_000)
