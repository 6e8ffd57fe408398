import { randomUUID } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import type { Locator, Page } from '@workflow-service/testkit/use-browser'
import { untilStatus } from './support/fill.ts'
import { hold } from './support/hold.ts'
import { follow, show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

// What a person hears and where the focus is, who has a screen reader and a keyboard.
const { service, browser, open, openFilled } = useConsole()

/** Waits until the live region of the page, or of the dialog above it, has this text. */
const announced = async (page: Page, text: string | RegExp) =>
  await page.locator('[data-announcements="true"]').getByText(text).waitFor({ state: 'attached' })
const hasFocus = async (page: Page, locator: Locator) => await locator.and(page.locator(':focus')).waitFor()
/** The name of a payload of `openFilled` that waits. */
const payloadOf = (order: string) => `the payload to Order intake, order_id: ${order}, customer: Ada`
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

test('a list says what its filters find, and the focus goes to the first one of the older rows', async () => {
  const { page, deliveryId } = await openFilled()
  await service.db.pool.query(
    `INSERT INTO deliveries SELECT (copy).* FROM (
       SELECT jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'created_at',
         created_at - number * interval '1 minute')) AS copy
       FROM deliveries d, generate_series(1, 30) AS number WHERE d.id = $1) AS copies`,
    [deliveryId],
  )
  await show(page, '/deliveries')
  const search = page.getByRole('searchbox')
  await search.fill('A-1002')
  await announced(page, '1 found')
  await search.fill('no such order')
  await announced(page, 'Nothing matches these filters.')
  await button(page, 'Clear').click()
  await announced(page, '25+ found')
  const shown = await page.getByRole('rowheader').count()
  expect(shown).toBe(25)
  await button(page, 'Older').press('Enter')
  await announced(page, /^\d+ more deliveries$/)
  await hasFocus(page, page.getByRole('rowheader').nth(shown).getByRole('link'))
})

test('a delivery beside the list is announced, and so is the next one, and the last one keeps the focus', async () => {
  const { page } = await openFilled('/deliveries?kind=payload')
  const [newest, oldest] = [/Rejected, order_id: A-1002/, /Accepted, order_id: A-1001/]
  await page
    .getByRole('row', { name: /A-1001/ })
    .getByRole('link')
    .press('Enter')
  await announced(page, oldest)
  const newer = button(page, 'Newer (k)')
  await newer.press('Enter')
  await announced(page, newest)
  await hasFocus(page, newer)
  expect(await newer.isDisabled()).toBe(true)
  await newer.press('Enter')
  await page.keyboard.press('Tab')
  await hasFocus(page, button(page, 'Older (j)'))
})

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

test('a row has changed before the dialog above it closes, and the focus goes to the title for its button', async () => {
  browser.expectProblem(/net::ERR_FAILED/)
  const { owner, page } = await open()
  await owner.call('createApiKey', { body: { id: randomUUID(), name: 'Shop', scopes: ['read'], expires_at: null } })
  // The row changes by the last response that the dialog waits for.
  await page.route(`**${APP_ROUTES.streamEvents.path}`, async (route) => await route.abort())
  await show(page, '/keys')
  await button(page, 'Revoke Shop').press('Enter')
  const json = await owner.call('listApiKeys')
  const times = 1
  await page.route(`**${APP_ROUTES.listApiKeys.path}`, async (route) => await route.fulfill({ json }), { times })
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.getByRole('cell', { name: 'Revoked' }).count()).toBe(1)
  await hasFocus(page, page.getByRole('heading', { name: 'API keys' }))
})

test('a part of a workflow is announced, and reached by a link that is gone, its tab has the focus', async () => {
  const { page, workflowId } = await openFilled()
  await show(page, `/workflows/${workflowId}`)
  const tabs = page.getByRole('navigation', { name: 'Parts of the workflow' })
  await tabs.getByRole('link', { name: 'Triggers' }).press('Enter')
  await announced(page, 'Triggers is shown.')
  await follow(page, `/workflows/${workflowId}`)
  const panel = page.getByRole('region', { name: 'Ready to start?' })
  await panel.getByRole('link', { name: 'Try it' }).press('Enter')
  await panel.getByRole('link', { name: 'Try it' }).waitFor({ state: 'detached' })
  await hasFocus(page, tabs.getByRole('link', { name: 'Try it' }))
  expect(await page.title()).toContain('Try it – Forward orders')
})

test('fields that find say when there is nothing, and how much there is', async () => {
  const { page } = await openFilled('/runs')
  await page.getByRole('combobox', { name: 'Workflow' }).fill('no such workflow')
  await announced(page, 'Nothing found.')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /^Find/ }).fill('Weekly')
  await page.getByRole('dialog').getByRole('status').getByText('1 found', { exact: true }).waitFor()
  expect(await page.getByRole('listbox', { name: 'Found' }).getByRole('option').count()).toBe(1)
})

test('new rows are announced once, and shown when asked for', async () => {
  const { owner, page, workflowId } = await openFilled('/runs')
  await page.evaluate(`{
    const region = document.querySelector('[data-announcements="true"]')
    globalThis.said = []
    new MutationObserver(() => said.push(region.textContent.trim())).observe(region, { childList: true })
  }`)
  const start = async () => {
    const { runId } = await owner.start(workflowId, 'order_id: A-3\ncustomer: Ada\ntotal: 1')
    await untilStatus(owner, runId, 'succeeded', 'failed')
  }
  await start()
  await button(page, '1 new').waitFor()
  await announced(page, 'New runs')
  await start()
  await button(page, '2 new').waitFor()
  await page.getByRole('combobox', { name: 'Workflow' }).fill('no such workflow')
  await announced(page, 'Nothing found.')
  expect(await page.evaluate('said')).toEqual(['New runs', 'Nothing found.'])
  await page.keyboard.press('Escape')
  expect(await page.getByRole('rowheader').count()).toBe(2)
  await button(page, '2 new').press('Enter')
  await page.getByRole('rowheader').first().locator('.row-link:focus').waitFor()
  expect(await page.getByRole('rowheader').count()).toBe(4)
})

test('the buttons of payloads that wait have names of their own, and the hours of a chart are read as a list', async () => {
  const { owner, page, sourceId, workflowId } = await openFilled()
  const params = { source_id: sourceId }
  const { version } = await owner.call('getWebhookSource', { params })
  await owner.call('saveWebhookSourceSettings', { params, body: { approval: 'always', version } })
  for (const order of ['W-1', 'W-2']) {
    const { runId } = await owner.start(workflowId, `order_id: ${order}\ncustomer: Ada\ntotal: 1`)
    await untilStatus(owner, runId, 'waiting')
  }
  await show(page, '/approvals')
  await page.getByRole('checkbox', { name: `Select ${payloadOf('W-2')}` }).waitFor()
  await button(page, `Decline ${payloadOf('W-1')}`).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click()
  await announced(page, 'The payload is declined.')
  await follow(page, '/')
  const hours = page.getByRole('figure').getByRole('listitem')
  expect((await hours.allTextContents()).join()).toMatch(/\d [AP]M: 1 accepted, 1 not accepted, 0 unknown|: 1 accepted/)
})

test('of payloads that are sent again together only the end is announced', async () => {
  const { owner, page, sourceId } = await openFilled()
  const params = { source_id: sourceId }
  await owner.call('pauseWebhookSource', { params })
  const body = { id: randomUUID(), source_id: sourceId, outcome: 'accepted', per_second: 1 } as const
  const job = await owner.call('createResendJob', { body })
  await show(page, `/resends/${job.id}`)
  expect(
    await page
      .getByRole('status')
      .filter({ has: page.getByRole('progressbar') })
      .count(),
  ).toBe(0)
  await owner.call('stopResendJob', { params: { resend_job_id: job.id } })
  await announced(page, 'Sending has ended.')
})

test('what becomes of a file, a trigger and a source is announced', async () => {
  const { page, workflowId, sourceId } = await openFilled((filled) => `/workflows/${filled.workflowId}/files`)
  const file = { name: 'prices.md', mimeType: 'text/markdown', buffer: Buffer.from([0xff, 0xfe, 0]) }
  await page.getByLabel('Files to upload').setInputFiles(file)
  await page.getByRole('alert').getByText('prices.md is not a text file').waitFor()
  await follow(page, `/workflows/${workflowId}/triggers`)
  await button(page, 'More actions for From the shop').click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await button(page, 'Delete trigger').click()
  await announced(page, 'Deleted.')
  await follow(page, `/sources/${sourceId}`)
  await button(page, 'More actions').click()
  await page.getByRole('menuitem', { name: 'Pause' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
  await announced(page, 'Order intake is paused.')
  expect(await button(page, 'Resume').count()).toBe(1)
})

test('the wait for an endpoint is said by a region that is part of the form', async () => {
  const { page } = await open('/sources/new')
  const release = await hold(page, `**${APP_ROUTES.saveWebhookSource.path.replace(/\{.*/, '')}*`)
  const region = await page.locator('form [role="status"]').elementHandle()
  await page.getByRole('textbox', { name: 'URL' }).press('Enter')
  await page.getByRole('status').getByText('Waiting for the endpoint to confirm').waitFor()
  expect(await region?.textContent()).toContain('Waiting for the endpoint')
  release()
})
