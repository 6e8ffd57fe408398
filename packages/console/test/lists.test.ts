import { randomUUID } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { type Page, useBrowser } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { insertRuns } from './support/insert-runs.ts'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

const running = (page: Page) => page.getByRole('row', { name: /Running/ })
/** A session with one start, which has not ended. */
const waitingSession = (page: Page) => page.getByRole('row', { name: /1 1$/ })

test('a row that has not ended is read again wherever it is in a list', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const endpointAnswers = Promise.withResolvers<void>()
  service.endpoint.answerWith(async () => {
    await endpointAnswers.promise
    return {}
  })
  const context = 'order_id: A-1\ncustomer: Grace\ntotal: 1'
  const body = { id: randomUUID(), context, session_id: null }
  await owner.call('startWorkflow', { params: { workflow_id: workflowId }, body })
  const open = async (path: string) => {
    const page = await browser.newPage(owner.context)
    await show(page, path)
    return page
  }
  const [first, filtered, sessions] = [await open('/runs'), await open('/runs'), await open('/sessions')]
  await running(first).waitFor()
  await filtered.getByRole('combobox', { name: 'Status' }).selectOption('Running')
  await filtered
    .getByRole('row', { name: /Succeeded/ })
    .first()
    .waitFor({ state: 'detached' })
  await waitingSession(sessions).waitFor()

  // More newer rows than a page has: it is outside of every first page now.
  await insertRuns(service.db, workflowId, 30)
  const older = await open('/runs')
  expect(await running(older).count()).toBe(0)
  await older.getByRole('button', { name: 'Older' }).click()
  await running(older).waitFor()
  const rows = await older.getByRole('row').count()

  endpointAnswers.resolve()
  for (const page of [first, filtered, older]) await running(page).waitFor({ state: 'detached' })
  await filtered.getByRole('row', { name: /Succeeded/ }).waitFor()
  await waitingSession(sessions).waitFor({ state: 'detached' })
  await sessions.getByRole('row', { name: /1 0$/ }).first().waitFor()
  expect(await older.getByRole('row').count()).toBe(rows)
}, 60_000)

test('a log keeps its position when an entry opens and closes, and the focus goes to the entry shown last', async () => {
  const owner = await service.signIn()
  const { sourceId } = await fill(service, owner)
  for (let count = 0; count < 20; count += 1) await owner.call('testWebhookSource', { params: { source_id: sourceId } })
  const page = await browser.newPage({ ...owner.context, viewport: { width: 1280, height: 400 } })
  await show(page, `/sources/${sourceId}/logs`)
  const links = page.getByRole('rowheader').getByRole('link')
  const position = async () => await page.evaluate<number>('scrollY')
  await links.nth(14).scrollIntoViewIfNeeded()
  const before = await position()
  expect(before).toBeGreaterThan(200)
  await links.nth(14).click()
  const drawer = page.getByRole('dialog')
  await drawer.getByText('Delivery id', { exact: true }).waitFor()
  expect(await position()).toBe(before)
  for (const key of ['k', 'k']) {
    const shown = page.url()
    await page.keyboard.press(key)
    await page.waitForURL((url) => url.href !== shown)
    await drawer.getByText('Delivery id', { exact: true }).waitFor()
  }
  const last = new URL(page.url()).pathname
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await links.nth(12).and(page.locator(':focus')).waitFor()
  expect(await links.nth(12).getAttribute('href')).toBe(last)
  expect(await position()).toBe(before)
}, 60_000)

test('filters are cleared beside them and under an empty result, with what was typed', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  await show(page, `/workflows?search=nothing-has-this-name`)
  await button('Clear the filters').click()
  await page.getByRole('rowheader', { name: 'Forward orders' }).waitFor()
  const search = page.getByRole('searchbox', { name: 'Find a workflow' })
  await search.and(page.locator(':focus')).waitFor()
  expect(await search.inputValue()).toBe('')
  await show(page, `/runs?workflow=${workflowId}&status=failed`)
  expect(await page.getByRole('row').count()).toBe(2)
  await button('Clear').click()
  await page.getByRole('row').nth(2).waitFor()
  expect(new URL(page.url()).search).toBe('')
  expect(await button('Clear').count()).toBe(0)
})

test.each([
  ['/runs/ca440bfa', 'The address has an id that is not complete.'],
  ['/runs?session=ca440bfa', 'The address has an id that is not complete.'],
  ['/runs?since=yesterday', 'The address has a filter that cannot be read.'],
  ['/runs?status=done', 'The address has a filter that cannot be read.'],
])('an address that cannot be read says so in words, without “Try again”: %s', async (path, text) => {
  const page = await browser.newPage((await service.signIn()).context)
  await show(page, path)
  await page.getByRole('alert').getByText(text).waitFor()
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
})

test('what a role does not allow is not tried again', async () => {
  const { organizationId } = await service.signIn()
  const page = await browser.newPage((await service.signIn({ role: 'member', organizationId })).context)
  await show(page, '/keys')
  await page.getByText('Your role does not allow this.').waitFor()
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
})

test('a column is left out while it is empty, and an error is also on the card of a phone', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage({ ...owner.context, viewport: { width: 375, height: 800 } })
  await show(page, `/workflows/${workflowId}/runs`)
  await page.getByText('Order intake did not accept the payload').waitFor()
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('columnheader', { name: 'Error' }).waitFor()
  await page.getByRole('combobox', { name: 'Status' }).selectOption('Succeeded')
  await page.getByRole('columnheader', { name: 'Error' }).waitFor({ state: 'detached' })
  // Without hovering over it.
  expect(await page.getByRole('row', { name: /\d+:\d+:\d+ [AP]M just now/ }).count()).toBe(1)
})
