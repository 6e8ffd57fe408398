import { expect, test } from '@jest/globals'
import { findAxeIssues, type Page, useBrowser } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

const press = async (page: Page, name: string) => await page.getByRole('button', { name, exact: true }).click()

test('an example is checked while it is typed, and says what the agent will see', async () => {
  const page = await browser.newPage((await service.signIn()).context)
  await show(page, '/sources/new')
  const example = page.getByLabel('Example body')
  await example.fill('{\n  "order_id": "A-1",\n  "total": twelve\n}')
  await page.getByText('Line 3: Unexpected token').waitFor()
  await example.fill(`{"list": [${Array.from({ length: 101 }).fill(1).join()}]}`)
  await page.getByText('must not have lists of more than 100 items').waitFor()
  await example.fill('{"order_id": "A-1", "lines": [{"sku": "X", "gift": true}, {"sku": "Y"}]}')
  await page.getByText('list of object').waitFor()
  await page.getByText('true or false, optional').waitFor()
  expect(await findAxeIssues(page)).toEqual([])
})

test('a source on another server asks for its secret before it is saved, and a verification can be stopped', async () => {
  const owner = await service.signIn()
  const { sourceId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, `/sources/${sourceId}`)
  const url = page.getByLabel('URL', { exact: true })
  const saved = await url.inputValue()
  await url.fill('https://elsewhere.test/orders')
  await page.getByText('This URL is on another server than the saved one').waitFor()
  await press(page, 'Verify and save')
  await page.getByText('Enter the secret again, or choose not to sign.').waitFor()

  await url.fill(saved)
  const stopped = Promise.withResolvers<void>()
  service.endpoint.answerWith(async () => {
    await stopped.promise
    return {}
  })
  await press(page, 'Verify and save')
  await page.getByText('Waiting for the endpoint to confirm').waitFor()
  await press(page, 'Cancel')
  const alert = page.getByRole('alert').filter({ hasText: 'You stopped waiting.' })
  await alert.waitFor()
  expect(await alert.textContent()).toContain('the source is saved if the endpoint confirmed')
  stopped.resolve()
}, 60_000)

test('a description completes the names of webhook sources, and the panel names those that do not exist', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, `/workflows/${workflowId}`)
  const description = page.getByLabel('Description')
  await description.fill('')
  await description.pressSequentially('Send it to "Stock" and to ord')
  const option = page.getByRole('option', { name: 'Order intake' })
  await option.waitFor()
  // At the caret, in the first line of the field.
  const [field, list] = [await description.boundingBox(), await option.boundingBox()]
  expect((list?.y ?? 0) - (field?.y ?? 0)).toBeLessThan(60)
  expect((list?.x ?? 0) - (field?.x ?? 0)).toBeGreaterThan(150)
  expect(await findAxeIssues(page)).toEqual([])
  await description.press('ArrowDown')
  await description.press('Enter')
  expect(await description.inputValue()).toBe('Send it to "Stock" and to Order intake')
  await page.getByText('Sends to').waitFor()
  await description.press('Control+s')
  await page.getByText('“Stock” is not a webhook source.').waitFor()
}, 60_000)

test('an ordinary word that begins like a source keeps its Enter and Tab', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, `/workflows/${workflowId}`)
  const description = page.getByLabel('Description')
  const option = page.getByRole('option', { name: 'Order intake' })
  await description.fill('')
  await description.pressSequentially('Take every order')
  await option.waitFor()
  expect(await option.getAttribute('aria-selected')).toBe('false')
  await description.press('Enter')
  await description.pressSequentially('and send the order')
  await option.waitFor()
  await description.press('Tab')
  expect(await description.inputValue()).toBe('Take every order\nand send the order')
  expect(await description.and(page.locator(':focus')).count()).toBe(0)
}, 60_000)

test('triggers, files and people are edited, and what was typed in a dialog is not lost silently', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, `/workflows/${workflowId}/triggers`)
  await press(page, 'Edit From the shop')
  await page.getByLabel('Filters').fill('{"region": "EU",}')
  await page.getByText('Line 1: Expected double-quoted property name').waitFor()
  await page.keyboard.press('Escape')
  await press(page, 'Stay here')
  await page.getByLabel('Filters').fill('{"region": "US"}')
  expect(await findAxeIssues(page)).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('{"region":"US"}').waitFor()
  await press(page, 'Pause From the shop')
  await page.getByText('Paused', { exact: true }).waitFor()

  await show(page, `/workflows/${workflowId}/files`)
  await page.locator('input[type=file]').setInputFiles([
    { name: 'prices.csv', mimeType: 'text/csv', buffer: Buffer.from('a;b\n1;2\n') },
    { name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from([0xff, 0xfe, 0x80]) },
  ])
  await page.getByText('photo.png is not a text file in UTF-8.').waitFor()
  await page.getByRole('link', { name: 'prices.csv' }).click()
  await page.getByRole('dialog').getByLabel('Text').fill('a;b\n3;4\n')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.').first().waitFor()

  await show(page, `/workflows/${workflowId}/people`)
  await page.getByLabel('Add a person').pressSequentially('grace')
  await page.getByRole('option', { name: /Grace Hopper/ }).click()
  await page.getByRole('button', { name: 'Remove Grace Hopper' }).waitFor()
}, 90_000)

test('the log is filtered by its URL, and read and resent with the keyboard', async () => {
  const owner = await service.signIn()
  const { sourceId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, `/sources/${sourceId}/logs?kind=payload`)
  expect(await page.getByRole('row').count()).toBe(3)
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The endpoint received it and did not accept it.').waitFor()
  await page.keyboard.press('j')
  await dialog.getByText('Order accepted.').first().waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await press(page, 'Send again')
  await dialog.getByText('The endpoint may act a second time.').waitFor()
  await dialog.last().getByRole('button', { name: 'Send again' }).click()
  await dialog.getByText('Repeats').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect(new URL(page.url()).search).toBe('?kind=payload')
}, 60_000)
