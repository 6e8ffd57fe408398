import { expect, test } from '@jest/globals'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import { mcpHandler, startCustomerEndpoint, waitUntil } from '@workflow-service/testkit'
import { newId, recordModels, reserveCost, settleCost } from '@workflow-service/database'
import { findAxeIssues, type Locator, type Page } from '@workflow-service/testkit/use-browser'
import { follow, show } from './support/show.ts'
import { codeIn, writeCode } from './support/code.ts'
import { hold } from './support/hold.ts'
import { loseResponse } from './support/lose-response.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser, open, openFilled } = useConsole()

/** One pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=='

const found = (_name: string, { q }: Record<string, unknown>) => ({
  content: [{ type: 'text', text: `found ${String(q)}` }],
})
const press = async (page: Page, name: string) => await page.getByRole('button', { name, exact: true }).click()

test('an example is checked while it is typed and says what the agent will see, and a source what it lacks', async () => {
  const { page } = await open('/sources/new')
  await page.getByText('What the agent will see').click()
  const example = page.getByLabel('Example body')
  await example.fill('{\n  "order_id": "A-1",\n  "total": twelve\n}')
  await page.getByText(/^Unexpected token 'w'.*"total": twelve/).waitFor()
  await example.fill(`{"list": [${Array.from({ length: 101 }).fill(1).join()}]}`)
  await page.getByText('“list” must not have lists of more than 100 items').waitFor()
  await example.fill('{"order_id": 12345678901234567890}')
  await page.getByText('The JSON contains the number 12345678901234567890, which cannot be').waitFor()
  await example.fill('{"order_id": "A-1", "lines": [{"sku": "X", "gift": true}, {"sku": "Y"}]}')
  await page.getByText('list of object').waitFor()
  await page.getByText('true or false, optional').waitFor()
  expect(await findAxeIssues(page)).toEqual([])

  await page.getByText('More settings').click()
  await example.fill('{')
  await page.getByRole('textbox', { name: 'Secret' }).fill('')
  await press(page, 'Verify and create')
  await page.getByLabel('Example body').and(page.locator(':focus')).waitFor()
  await example.fill('{}')
  browser.expectProblem(/422/)
  await press(page, 'Verify and create')
  await page.getByText('Required.').nth(1).waitFor()
  await page.getByLabel('URL').fill(' https://example.com/pasted\n')
  expect(await page.getByLabel('URL').inputValue()).toBe('https://example.com/pasted')
  await press(page, 'New secret')
  await page.getByRole('button', { name: 'New secret' }).and(page.locator(':focus')).waitFor()
  expect(await page.getByRole('textbox', { name: 'Secret' }).inputValue()).toHaveLength(44)
})

test('a source on another server asks for its secret, and its deletion says what becomes of payloads that wait', async () => {
  const { page } = await openFilled(({ sourceId }) => `/sources/${sourceId}`)
  const url = page.getByLabel('URL', { exact: true })
  await url.fill('https://elsewhere.test/orders')
  browser.expectProblem(/422/)
  await press(page, 'Verify and save')
  await page.getByText('Enter the secret again, or choose not to sign.').waitFor()
  expect(await page.getByLabel('Replace it').isVisible()).toBe(true)
  await press(page, 'More actions')
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByText('Payloads to it that wait for an approval are declined.').waitFor()
  // The keys save the form of the dialog, not that of the page below it.
  await page.keyboard.press('Control+s')
  await page.locator('.field-error', { hasText: 'exactly as shown' }).waitFor()
})

test('a description completes the names of webhook sources, not of ordinary words, and the panel names those that do not exist', async () => {
  const { page } = await openFilled(({ workflowId }) => `/workflows/${workflowId}`)
  const description = page.getByLabel('Task')
  await description.fill('')
  await description.pressSequentially('Send it to "Stock" and to ord')
  const option = page.getByRole('option', { name: 'Order intake' })
  await option.waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await description.press('ArrowDown')
  await description.press('Enter')
  expect(await description.inputValue()).toBe('Send it to "Stock" and to Order intake')
  await page.getByText('Sends to:').waitFor()
  await description.press('Control+s')
  await page.getByText('“Stock” is not a webhook source.').waitFor()
  await description.fill('')
  await description.pressSequentially('Find it in cus')
  await page.getByRole('option', { name: 'Customers' }).click()
  expect(await description.inputValue()).toBe('Find it in Customers')

  // A word that begins like a source keeps its Enter and Tab.
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

  // A text that is too long is not cut off, and is not saved.
  await description.fill('x'.repeat(50_001))
  await description.press('Control+s')
  await page.getByText('Must have at most 50,000 characters.').first().waitFor()
})

test('a refused start says so once until its cause is gone; what is typed is not left without a question and replaces the example, also one that arrives late; a narrow page shows every tab', async () => {
  browser.expectProblem(/409/)
  const { owner, workflowId, sourceId } = await openFilled()
  const page = await browser.newPage({ ...owner.context, viewport: { width: 375, height: 800 }, hasTouch: true })
  const text = page.getByRole('textbox', { name: 'Text' })
  const release = await hold(page, '**/readiness')
  await page.goto(`/workflows/${workflowId}/try`)
  await text.focus()
  expect(await text.inputValue()).toBe('')
  release()
  await page.getByRole('button', { name: 'Clear' }).waitFor()
  await page.keyboard.type('total: 1')
  expect(await text.inputValue()).toBe('total: 1')

  const params = { workflow_id: workflowId }
  const { version } = await owner.call('getWorkflow', { params })
  const description = 'If the customer is new, send it to Order intake.'
  await owner.call('saveWorkflow', { params, body: { name: 'F', description, scope: 'company_wide', version } })
  await owner.call('setWorkflowActive', { params, body: { is_active: false } })
  const openStream = await hold(page, `**${APP_ROUTES.streamEvents.path}`)
  await show(page, `/workflows/${workflowId}/try`)
  expect(await page.title()).toMatch(/^Try it – /)
  expect(await page.getByText('Ctrl-Enter').isVisible()).toBe(false)
  const rows = new Set<number | undefined>()
  for (const each of await page.getByRole('navigation', { name: 'Parts of the workflow' }).getByRole('link').all()) {
    const tab = await each.boundingBox()
    expect((tab?.x ?? 375) + (tab?.width ?? 0)).toBeLessThanOrEqual(375)
    rows.add(tab?.y)
  }
  expect(rows.size).toBe(2)
  await press(page, 'Clear')
  await press(page, 'Use an example')
  expect(await text.inputValue()).toBe('order_id: X-0000\ncustomer: Jane Doe\ntotal: 0.5')
  // A delivery does not change the examples. Once its stream is open, the page reads all again.
  const again = page.waitForResponse((response) => response.url().endsWith(sourceId))
  openStream()
  await again
  const read: string[] = []
  page.on('request', (request) => read.push(request.url()))
  const listed = page.waitForResponse('**/app/webhook-sources')
  await owner.call('testWebhookSource', { params: { source_id: sourceId } })
  await listed
  expect(read.filter((url) => url.endsWith(sourceId))).toEqual([])
  await text.fill('order_id: A-1')
  await press(page, 'Start')
  const refusal = page.getByText('Not started. It is switched off.')
  await refusal.first().waitFor()
  expect(await refusal.count()).toBe(1)
  await page.locator('form').getByRole('button', { name: 'Switch on' }).click()
  await page.getByText('It starts, but the built-in agent will refuse it.').waitFor()
  await refusal.waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  await press(page, 'Stay here')
  expect(await text.inputValue()).toBe('order_id: A-1')
})

test('what is typed while a form is being saved stays in it, and is saved next', async () => {
  const { owner, page, workflowId } = await openFilled(({ workflowId: id }) => `/workflows/${id}`)
  const responses = Promise.withResolvers<void>()
  await page.route(`**/app/workflows/${workflowId}`, async (route) => {
    if (route.request().method() === 'PUT') await responses.promise
    await route.continue()
  })
  const description = page.getByLabel('Task')
  await description.fill('First.')
  await press(page, 'Save')
  await description.fill('First. Second.')
  responses.resolve()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  expect(await description.inputValue()).toBe('First. Second.')
  await press(page, 'Save')
  await page.getByRole('button', { name: 'Revert' }).waitFor({ state: 'detached' })
  const saved = await owner.call('getWorkflow', { params: { workflow_id: workflowId } })
  expect(saved.description).toBe('First. Second.')
})

test('triggers, files and people are edited, and what was typed in a dialog is not lost silently', async () => {
  const { owner, page, workflowId } = await openFilled(({ workflowId: id }) => `/workflows/${id}/triggers`)
  await press(page, 'Edit From the shop')
  const input = page.getByLabel('Input message')
  await input.fill('An order:')
  // The browser closes a dialog in spite of the page when Escape is pressed again and again.
  for (let times = 0; times < 4; times += 1) await page.keyboard.press('Escape')
  await input.and(page.locator(':focus')).waitFor()
  await press(page, 'Stay here')
  expect(await findAxeIssues(page)).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('An order:').waitFor()
  await press(page, 'Pause From the shop')
  await page.getByText('Paused', { exact: true }).waitFor()

  await follow(page, `/workflows/${workflowId}/files`)
  await page.locator('input[type=file]').setInputFiles([
    { name: 'prices.csv', mimeType: 'text/csv', buffer: Buffer.from('a;b\n1;2\n') },
    { name: 'data.bin', mimeType: 'image/png', buffer: Buffer.from([0xff, 0xfe, 0x80]) },
    { name: 'utf16.txt', mimeType: 'text/plain', buffer: Buffer.from('UTF-16', 'utf16le') },
    { name: 'broken.pdf', mimeType: 'application/pdf', buffer: Buffer.from('no PDF') },
    { name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from(PNG, 'base64') },
  ])
  await page.getByText('data.bin is not a text file in UTF-8.').waitFor()
  await page.getByText('utf16.txt is not a text file in UTF-8.').waitFor()
  await page.getByText('broken.pdf is no PDF or image, as its name says.').waitFor()
  await page.getByRole('link', { name: 'photo.png' }).click()
  const image = page.getByRole('dialog').getByRole('img', { name: 'photo.png' })
  await image.waitFor()
  expect(await image.evaluate((element: { naturalWidth?: number }) => element.naturalWidth)).toBe(1)
  await page.getByText('@photo.png', { exact: true }).waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await press(page, 'Close')
  await page.getByRole('link', { name: 'prices.csv' }).click()
  await page.getByRole('dialog').getByLabel('Text').fill('a;b\n3;4\n')
  await page.goBack()
  await press(page, 'Stay here')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Revert' }).waitFor({ state: 'detached' })

  await follow(page, `/workflows/${workflowId}/history`)
  await page.getByRole('row').filter({ hasText: 'Files' }).nth(1).getByRole('link').click()
  const drawer = page.getByRole('dialog', { name: 'Version' })
  await drawer.getByRole('combobox', { name: 'Compare with' }).selectOption('newest')
  const file = drawer.getByRole('figure', { name: 'file prices.csv' })
  await file.getByRole('insertion').getByText('3;4').waitFor()
  expect(await file.locator('pre > *').allTextContents()).toEqual(['a;b', '1;2', '3;4'])
  expect(await findAxeIssues(page)).toEqual([])
  await drawer.getByRole('button', { name: /^Restore version/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Restore', exact: true }).click()
  await page
    .getByText(/^Version \d+ is restored\.$/)
    .first()
    .waitFor()
  await follow(page, `/workflows/${workflowId}/files`)
  await page.getByRole('link', { name: 'prices.csv' }).click()
  await page.getByText('a;b\n1;2').waitFor()
  const params = { workflow_id: workflowId }
  const { files } = await owner.call('getWorkflow', { params })
  const { id: fileId, version } = files.find(({ name }) => name === 'prices.csv')!
  await page.getByRole('dialog').getByLabel('Text').fill('typed after it was deleted')
  await owner.call('deleteFile', { params: { ...params, file_id: fileId }, query: { version } })
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await press(page, 'Keep mine')
  await page.getByRole('alert').getByText('Changed meanwhile').waitFor({ state: 'detached' })
  const kept = await owner.call('getFile', { params: { ...params, file_id: fileId } })
  expect(kept.content).toBe('typed after it was deleted')
  await press(page, 'Delete')
  await page.getByText('An earlier version under “History” brings it back.').waitFor()
  await press(page, 'Delete file')
  await page.getByRole('link', { name: 'prices.csv' }).waitFor({ state: 'detached' })
  const { data: versions } = await owner.call('listWorkflowVersions', { params })
  const [{ number: newest } = { number: 0 }, earlier] = versions
  const body = { newest }
  await owner.call('restoreWorkflowVersion', { params: { ...params, version_id: earlier?.id ?? '' }, body })
  await page.getByRole('link', { name: 'prices.csv' }).waitFor()

  await service.signIn({ role: 'member', organizationId: owner.organizationId })
  await follow(page, `/workflows/${workflowId}/people`)
  await page.getByLabel('Add a person').pressSequentially('grace')
  await page.getByRole('option', { name: /Grace Hopper/ }).click()
  await page.getByRole('button', { name: 'Remove Grace Hopper' }).waitFor()
  // What was typed is forgotten.
  await page.getByLabel('Add a person').click()
  await page.getByRole('option', { name: /^The member/ }).waitFor()
})

test('a schedule is saved, and its time zone is shown as it was saved, also one that the browser calls by another name', async () => {
  const { owner, page, workflowId } = await openFilled()
  const params = { workflow_id: workflowId }
  const timing = { time: '09:00', day: null, time_zone: 'Europe/Kyiv' }
  const { version } = (await owner.call('getWorkflow', { params })).auto_run
  await owner.call('saveAutoRun', { params, body: { enabled: true, frequency: 'daily', timing, version } })
  await show(page, `/workflows/${workflowId}/schedule`)
  expect(await page.getByLabel('Time zone').inputValue()).toBe('Europe/Kyiv')
  await page.getByLabel('How often').selectOption('Every week')
  await page.getByLabel('On', { exact: true }).selectOption('Friday')
  await page.getByLabel('Time', { exact: true }).fill('23:30')
  await press(page, 'Save')
  const nextRuns = page.getByRole('table', { name: 'Next runs' })
  await nextRuns
    .getByRole('cell', { name: /11:30(:00)? PM/ })
    .first()
    .waitFor()
  const weekly = { day: 5, time: '23:30', time_zone: 'Europe/Kyiv' }
  expect((await owner.call('getWorkflow', { params })).auto_run).toMatchObject({ frequency: 'weekly', timing: weekly })
  await page.getByLabel('How often').selectOption('Every month')
  await page.getByLabel('Day of the month').selectOption('The last day')
  await page.getByLabel('Time', { exact: true }).fill('')
  await page.getByText('it recurs in UTC at the minute').waitFor()
  await press(page, 'Save')
  await nextRuns
    .getByRole('cell', { name: /11:30(:00)? PM/ })
    .first()
    .waitFor({ state: 'detached' })
  expect((await owner.call('getWorkflow', { params })).auto_run).toMatchObject({ frequency: 'monthly', timing: null })
})

test('a time of which a part is missing is not saved by keeping it in place of the schedule of another person', async () => {
  browser.expectProblem(/409/)
  const { owner, page, workflowId } = await openFilled()
  const params = { workflow_id: workflowId }
  const save = async (time: string) => {
    const { version } = (await owner.call('getWorkflow', { params })).auto_run
    const timing = { time, day: null, time_zone: 'UTC' }
    await owner.call('saveAutoRun', { params, body: { enabled: true, frequency: 'daily', timing, version } })
  }
  await save('09:00')
  await show(page, `/workflows/${workflowId}/schedule`)
  await page.getByLabel('How often').selectOption('Every hour')
  await save('10:00')
  await press(page, 'Save')
  await page.getByText('Changed meanwhile').waitFor()
  // Without its hour, the value is empty.
  await page.getByLabel('Time', { exact: true }).press('Backspace')
  await press(page, 'Keep mine')
  await page
    .getByText(/^(Enter all of it, or clear it|Saved)\.$/)
    .first()
    .waitFor()
  expect((await owner.call('getWorkflow', { params })).auto_run.timing).toMatchObject({ time: '10:00' })
})

test('a switch that is switched twice in a row ends as it was switched last', async () => {
  const { owner, page, workflowId } = await openFilled(({ workflowId: id }) => `/workflows/${id}`)
  const active = page.getByRole('switch', { name: /^Switched/ })
  const wasOn = await active.isChecked()
  const sent: boolean[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/active')) sent.push((request.postDataJSON() as { is_active: boolean }).is_active)
  })
  const goOn = await hold(page, '**/active')
  await active.setChecked(!wasOn)
  await active.setChecked(wasOn)
  // A request that was made before this one is known by then.
  await page.evaluate(`fetch('/healthz').then(() => {})`)
  expect(sent).toEqual([!wasOn])
  goOn()
  await page
    .getByText(wasOn ? 'Switched on.' : 'Switched off: it cannot be started.')
    .first()
    .waitFor()
  expect(sent).toEqual([!wasOn, wasOn])
  const { is_active: isOn } = await owner.call('getWorkflow', { params: { workflow_id: workflowId } })
  expect([isOn, await active.isChecked()]).toEqual([wasOn, wasOn])
})

test('a workflow is started as scheduled again by a person who stays on the page because of what was typed', async () => {
  const { owner, page, workflowId } = await openFilled(({ workflowId: id }) => `/workflows/${id}/schedule`)
  const countRuns = async () => (await owner.call('listRuns', { query: { workflow_id: workflowId } })).data.length
  const before = await countRuns()
  await page.getByLabel('Run on a schedule').check()
  await press(page, 'Run now as scheduled')
  await press(page, 'Stay here')
  await press(page, 'Save')
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  await press(page, 'Run now as scheduled')
  await page.getByRole('heading', { name: 'Run of Forward orders' }).waitFor()
  expect(await countRuns()).toBe(before + 2)
})

test('a new workflow whose response was lost is saved as it was typed last', async () => {
  const { owner, page } = await open('/workflows/new')
  await page.getByLabel('Name').fill('Forward')
  await page.getByLabel('Task').fill('Do it.')
  browser.expectProblem(/ERR_FAILED/)
  await loseResponse(page, '**/app/workflows')
  await press(page, 'Create workflow')
  await page.getByText('The server cannot be reached.').waitFor()
  await page.getByLabel('Name').fill('Forward  orders')
  await press(page, 'Create workflow')
  await page.getByRole('heading', { level: 1, name: 'Forward orders' }).waitFor()
  expect((await owner.call('listWorkflows')).data).toMatchObject([{ name: 'Forward  orders' }])
})

test('a scheduled start or an evaluation whose response was lost is made once when it is repeated', async () => {
  const { page, owner, workflowId } = await openFilled()
  browser.expectProblem(/ERR_FAILED/)
  const params = { workflow_id: workflowId }
  const newCase = { name: 'A', context: 'order_id: A-1', expected: [], version: null }
  await owner.call('saveCase', { params: { ...params, case_id: newId() }, body: newCase })
  const makeTwice = async (path: string, button: string, failed: Locator) => {
    await loseResponse(page, `**/app/workflows/${workflowId}/${path}`)
    await press(page, button)
    await failed.getByText('The server cannot be reached.').waitFor()
    await press(page, button)
  }
  await show(page, `/workflows/${workflowId}/schedule`)
  await makeTwice('auto-run/start', 'Run now as scheduled', page.getByRole('region', { name: 'Messages' }))
  await page.waitForURL('**/runs/*')
  const { data: runs } = await owner.call('listRuns')
  expect(runs.filter(({ origin }) => origin === 'auto_run')).toHaveLength(1)
  await follow(page, `/workflows/${workflowId}/cases`)
  await makeTwice('evaluations', 'Try the case', page.getByRole('main'))
  await page.getByRole('dialog').waitFor()
  expect((await owner.call('listEvaluations', { params })).data).toHaveLength(1)
})

test('a start whose response was lost is made once, also if its repetition is refused before it is made again', async () => {
  const { page, owner } = await openFilled(({ workflowId }) => `/workflows/${workflowId}/try`)
  browser.expectProblem(/ERR_FAILED|429/)
  const path = '**/app/workflows/*/start'
  const context = 'order_id: A-1\ncustomer: Ada\ntotal: 1'
  await page.getByRole('textbox', { name: 'Text' }).fill(context)
  await loseResponse(page, path)
  await press(page, 'Start')
  await page.getByText('The server cannot be reached.').waitFor()
  const error = { code: 'rate_limited', message: 'Too many requests.', request_id: 'r' }
  await page.route(path, async (route) => await route.fulfill({ status: 429, json: { error } }), { times: 1 })
  await press(page, 'Start')
  await page.getByText('Too many requests.').waitFor()
  await press(page, 'Start')
  await page.waitForURL('**/runs/*')
  const { data: runs } = await owner.call('listRuns')
  expect(runs.filter(({ first_line: line }) => line === 'order_id: A-1')).toHaveLength(1)
})

test('a workflow is duplicated with a long name of emoji, and deleted by its name as the page shows it', async () => {
  const { owner, page } = await open()
  const id = newId()
  const name = `${'a'.repeat(471)}  ${'👩‍👩‍👧'.repeat(5)}`
  await owner.call('createWorkflow', { body: { id, name, description: 'Do it.', scope: 'company_wide' } })
  await show(page, `/workflows/${id}`)
  await press(page, 'More actions')
  await page.getByRole('menuitem', { name: 'Duplicate' }).click()
  await press(page, 'Duplicate')
  const shown = `Copy of ${'a'.repeat(471)} ${'👩‍👩‍👧'.repeat(3)}`
  await page.getByRole('heading', { level: 1, name: shown, exact: true }).waitFor()
  await press(page, 'More actions')
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill(shown)
  await press(page, 'Delete workflow')
  await page.getByRole('heading', { level: 1, name: 'Workflows' }).waitFor()
  expect((await owner.call('listWorkflows')).data).toMatchObject([{ id }])
})

test('names are found in any case, and cut between characters', async () => {
  const { owner, page } = await open()
  const { version } = await owner.call('getOrganization')
  await owner.call('saveOrganization', { body: { name: '👩‍👩‍👧 Açme', version } })
  await owner.saveSource({ name: 'İstanbul Straße', endpoint_url: service.endpoint.url })
  await show(page, '/sources?search=STRASSE')
  await page.getByRole('link', { name: 'İstanbul Straße' }).waitFor()
  expect(await page.locator('.avatar').textContent()).toBe('👩‍👩‍👧')
  await follow(page, '/workflows/new')
  const description = page.getByLabel('Task')
  await description.pressSequentially('Send it to İSTA')
  await page.getByRole('option', { name: 'İstanbul Straße' }).click()
  expect(await description.inputValue()).toBe('Send it to İstanbul Straße')
  await description.fill('')
  await follow(page, '/organization')
  // Chromium takes the name over only where the locale of the machine has its characters.
  await page.evaluate('HTMLAnchorElement.prototype.click = function () { globalThis.named = this.download }')
  await press(page, 'Export the manifest')
  await waitUntil(async () => (await page.evaluate('globalThis.named')) === '-açme.yaml')
})

test('versions of the instructions are compared line by line, and restored', async () => {
  const { page } = await open('/agents')
  const text = page.getByLabel('Instructions', { exact: true })
  for (const instructions of ['Be brief.\nSend no names.', 'Be brief.\nSend no prices.']) {
    await text.fill(instructions)
    await press(page, 'Save instructions')
    const saved = () => service.db.pool.query('SELECT FROM instructions WHERE text = $1', [instructions])
    await waitUntil(async () => (await saved()).rowCount === 1)
  }
  await press(page, 'Compare version 2')
  const changed = page.getByRole('dialog').getByRole('figure')
  await changed.waitFor()
  expect(await changed.locator('del, ins').allTextContents()).toEqual(['Send no names.', 'Send no prices.'])
  // Also without colors.
  expect(await changed.locator('del').getAttribute('data-sign')).toBe('−')
  expect(await findAxeIssues(page)).toEqual([])
  await press(page, 'Close')
  await press(page, 'Compare version 1')
  await press(page, 'Restore version 1')
  await page.getByRole('row', { name: /^3, now / }).waitFor()
  expect(await text.inputValue()).toBe('Be brief.\nSend no names.')
  await page.getByLabel('System text').getByText('Send no names.').waitFor()
})

test('an organization adds a key of its own for a model, which is replaced and removed', async () => {
  const { page } = await open('/agents')
  const row = page.getByRole('row', { name: /^scripted …/ })
  const enter = async (key: string) => {
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Model').selectOption('scripted')
    await dialog.getByLabel('Key').fill(key)
    await press(page, 'Save key')
    await dialog.waitFor({ state: 'detached' })
  }
  await page.route('**/app/models', async (route) => await route.fulfill({ json: { data: [] } }), { times: 1 })
  await press(page, 'Add a key')
  await page.getByText('There is no model yet.').waitFor()
  await press(page, 'Add a key')
  await enter('sk-a-wrong-key-1111')
  await row.filter({ hasText: '…1111' }).waitFor()
  await press(page, 'Replace the key for scripted')
  await enter('sk-the-right-key-2222')
  await row.filter({ hasText: '…2222' }).waitFor()
  expect(await page.content()).not.toContain('the-right-key')
  expect(await findAxeIssues(page)).toEqual([])
  await press(page, 'Remove the key for scripted')
  await press(page, 'Remove key')
  await row.waitFor({ state: 'detached' })
})

test('a look-up is connected with the tools that are allowed, tried, shown where a run used it, and deleted', async () => {
  const { page, owner, workflowId } = await openFilled(() => '/lookups/new')
  const inputSchema = { type: 'object', properties: { q: { type: 'string' } } }
  const tools = [
    { name: 'search', description: 'Searches people.', inputSchema, annotations: { readOnlyHint: true } },
    { name: 'remove', inputSchema },
  ]
  await using server = await startCustomerEndpoint({ answer: mcpHandler(() => tools, found) })
  await page.getByLabel('Name').fill('Directory')
  await page.getByLabel('Model Context Protocol').check()
  await page.getByLabel('URL').fill(`${server.url}/mcp`)
  await page.getByLabel('Tools').fill('remove')
  await press(page, 'Create')
  await page.getByText('may change something').waitFor()
  await page.getByLabel('Tools').fill('search')
  await press(page, 'Create')
  await page.getByRole('heading', { name: 'Directory' }).waitFor()
  await page.getByText('Searches people.').waitFor()
  await page.getByLabel('Arguments as JSON').fill('')
  await press(page, 'Look up')
  await page.getByText('Enter JSON.').waitFor()
  await page.getByLabel('Arguments as JSON').fill('{ "q": "Ada" }')
  await press(page, 'Look up')
  await page.getByText('found Ada').waitFor()
  expect(await findAxeIssues(page)).toEqual([])

  await follow(page, `/workflows/${workflowId}/agent`)
  await page.getByLabel('Model').selectOption('scripted')
  await press(page, 'Save')
  await page.getByText('Saved', { exact: false }).first().waitFor()
  const lookUp = { name: 'look_up_directory_search', arguments: { q: 'Grace' } }
  const send = { name: 'send_to_order_intake', arguments: { order_id: 'A-1', customer: 'Grace', total: 1 } }
  const end = { name: 'end_run', arguments: { status: 'done', reason: 'Sent.' } }
  const description = 'Find the customer in Directory. Send it to "Order intake".'
  await service.db.prisma.workflow.update({ where: { id: workflowId }, data: { description } })
  service.model.script({ toolCalls: [lookUp] }, { toolCalls: [send] }, { toolCalls: [end] })
  const { runId } = await owner.start(workflowId, 'Who is Grace?')
  await follow(page, `/runs/${runId}`)
  await page.getByText('Succeeded', { exact: true }).first().waitFor()
  await page.getByText('Looked up search in Directory').waitFor()
  await follow(page, '/usage?by=lookup')
  await page.getByRole('row', { name: /^Directory 1 11$/ }).waitFor()
  expect(service.model.violations).toEqual([])

  await follow(page, '/lookups')
  await page.getByRole('link', { name: 'Directory' }).click()
  await press(page, 'More actions')
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByLabel('Type “Directory” to confirm').fill('Directory')
  await press(page, 'Delete look-up')
  await page.waitForURL('**/lookups')
  await page.getByRole('link', { name: 'Directory' }).waitFor({ state: 'detached' })
})

test('a run is kept as a case, and an evaluation shows where other rules would send something else', async () => {
  const { page, workflowId, runId } = await openFilled()
  await service.db.prisma.start.update({ where: { id: runId }, data: { status: 'succeeded' } })
  await show(page, `/runs/${runId}`)
  await press(page, 'Keep as case')
  await page.getByRole('dialog').getByLabel('Name').fill('An order')
  await press(page, 'Keep')
  await page.getByText('Kept.', { exact: false }).first().waitFor()
  await follow(page, `/workflows/${workflowId}/cases`)
  await page.getByRole('link', { name: 'An order' }).click()
  const text = page.getByRole('dialog').getByLabel('Text')
  await text.fill('order_id: A-17')
  const payloads = page.getByLabel('Payloads that are right')
  await payloads.fill('[null]')
  await press(page, 'Save')
  await page.getByText('Enter a list: [{"to": "…", "payload": {…}}].').waitFor()
  await payloads.fill('[{"to": "Order intake", "payload": {"total": 1, "customer": "Ada", "order_id": "A-17"}}]')
  await press(page, 'Save')
  await page.getByText('Saved.').first().waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await press(page, 'Close')
  await page.getByText('Another task or other rules').click()
  const rules = `deliveries: [{ to: Order intake, payload: { order_id: fields.order_id, customer: '"Ada"', total: '2' } }]`
  await page.getByLabel('rules.yaml').fill(rules)
  await press(page, 'Try the case')
  await page.getByText('0 of 1 cases have exactly the right payloads.').waitFor()
  const result = page.getByRole('region', { name: 'An order' })
  await result.getByRole('figure', { name: 'Order intake: total' }).waitFor()
  expect(await result.locator('del, ins').allTextContents()).toEqual(['Right', 'Would be sent', '1', '2'])
  expect(await findAxeIssues(page)).toEqual([])
  // What the page shows is in the database.
  await page.reload()
  await result.getByRole('button', { name: 'This is right' }).click()
  const right = `SELECT FROM cases WHERE workflow_id = $1 AND expected #>> '{0,payload,total}' = '2'`
  await waitUntil(async () => (await service.db.pool.query(right, [workflowId])).rowCount === 1)
  await press(page, 'Close')
  await page.getByRole('link', { name: 'An order' }).click()
  await press(page, 'Delete')
  await press(page, 'Delete case')
  await page.getByText('Deleted.').first().waitFor()
  await page.getByText('No case yet').waitFor()
})

test('a case of an evaluation that was stopped is not said to fail', async () => {
  const { owner, page, workflowId } = await openFilled()
  const [caseId, id] = [newId(), newId()]
  const params = { workflow_id: workflowId, evaluation_id: id }
  const body = { name: 'An order', context: 'order_id: A-17', expected: [], version: null }
  await owner.call('saveCase', { params: { workflow_id: workflowId, case_id: caseId }, body })
  const asIs = { model: null, version_id: null, description: null, rules: null }
  await owner.call('startEvaluation', { params, body: { id, ...asIs } })
  await waitUntil(async () => (await owner.call('getEvaluation', { params })).finished_at !== null)
  await service.db.pool.query(
    `UPDATE evaluation_results SET error = 'stopped: A person stopped the evaluation' WHERE evaluation_id = $1`,
    [id],
  )
  await show(page, `/workflows/${workflowId}/cases?evaluation=${id}`)
  await page.getByRole('row', { name: 'An order Stopped' }).waitFor()
  expect(await page.getByText('Would fail').count()).toBe(0)
})

test('a case that is saved again is of the source that has the name now, if its own was deleted', async () => {
  const { owner, page, workflowId, sourceId } = await openFilled()
  const params = { workflow_id: workflowId, case_id: newId() }
  const expected = [{ source_id: newId(), source_name: 'Order intake', payload: {} }]
  await owner.call('saveCase', { params, body: { name: 'An order', context: 'x', expected, version: null } })
  await show(page, `/workflows/${workflowId}/cases`)
  await page.getByRole('link', { name: 'An order' }).click()
  await page.getByRole('dialog').getByLabel('Text').fill('order_id: A-17')
  await press(page, 'Save')
  await page.getByText('Saved.').first().waitFor()
  expect((await owner.call('getCase', { params })).expected).toEqual([{ ...expected[0], source_id: sourceId }])
})

const MODEL = { data_region: 'eu', currency: 'EUR', organization_ids: [] }
const MODELS: Parameters<typeof recordModels>[1] = [
  { ...MODEL, name: 'builtin', model: 'builtin', is_default: true, fallback: null, reads: [] },
  { ...MODEL, name: 'fast', model: 'openai:fast', is_default: false, fallback: 'builtin', reads: ['pdf', 'image'] },
]

test('a workflow gets a model and budgets, of which what is nearly spent is on the overview', async () => {
  const { page, workflowId } = await openFilled()
  await recordModels(service.db, MODELS)
  await show(page, `/workflows/${workflowId}/agent`)
  await page.getByLabel('Model').selectOption({ label: 'fast, reads PDFs and images, data in eu, fallback builtin' })
  await page.getByLabel('Budget of a run (EUR)').fill('0.5')
  for (const [amount, problem] of [
    ['two', 'Write an amount such as 1.50'],
    ['1,234', 'Write it without a comma, such as 1234 or 1.234.'],
    ['1000000001', 'Write at most 1,000,000,000.'],
  ] as const) {
    await page.getByLabel('Budget of a day (EUR)').fill(amount)
    await press(page, 'Save')
    await page.getByLabel('Budget of a day (EUR)').and(page.locator('[aria-invalid]')).waitFor()
    await page.getByText(problem).waitFor()
  }
  await page.getByLabel('Budget of a day (EUR)').fill('2')
  await press(page, 'Save')
  await page.getByText('Saved', { exact: false }).first().waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  // The model reads what the built-in agent would refuse.
  const description = 'If the total is over 100, send it to Order intake.'
  await service.db.prisma.workflow.update({ where: { id: workflowId }, data: { description } })
  await show(page, `/workflows/${workflowId}`)
  await page.locator('.readiness').getByText('Yes.', { exact: true }).waitFor()
  await page.getByText('Sends to:').waitFor()
  expect(await page.getByText('write a rules.yaml').count()).toBe(0)
  const { organizationId } = await service.db.prisma.workflow.findFirstOrThrow({ where: { id: workflowId } })
  const cost = { organizationId, workflowId, runId: newId(), turn: 1 }
  await reserveCost(service.db, { ...cost, amount: 1, runSpent: 0, expiresInMs: 1_000 })
  await settleCost(service.db, { ...cost, cost: 1_700_000 })
  await follow(page, '/')
  await page.getByRole('link', { name: /has spent 1.70 EUR of 2.00 EUR this day/ }).waitFor()
  await follow(page, '/organization')
  await page.getByRole('group', { name: 'Members may choose' }).getByLabel('fast').uncheck()
  await page.getByLabel('Budget of a month (EUR)').fill('20')
  await press(page, 'Save models and budget')
  const read = () => service.db.prisma.organization.findFirstOrThrow({ where: { id: organizationId } })
  // Not until it says "Saved": so it may still do of the workflow.
  await waitUntil(async () => (await read()).monthBudget !== null)
  expect(await read()).toMatchObject({ monthBudget: 20_000_000n, offeredModels: ['builtin'] })
})

test('a choice of no model for members is refused, because none would mean all', async () => {
  await recordModels(service.db, MODELS)
  const { owner, page } = await open('/organization')
  const { id } = await owner.call('getOrganization')
  await service.db.prisma.organization.update({ where: { id }, data: { offeredModels: ['builtin'] } })
  await show(page, '/organization')
  await page.getByLabel('The built-in agent').uncheck()
  await press(page, 'Save models and budget')
  await page.getByText('Choose at least one.').waitFor()
  expect((await owner.call('getOrganization')).offered_models).toEqual(['builtin'])
})

test('a description with a condition leads to a filled-in rule, after which nothing is refused', async () => {
  const { page } = await openFilled(({ workflowId }) => `/workflows/${workflowId}`)
  await page.getByLabel('Task').fill('If the total is over 100, send it to Order intake.')
  const notice = page.locator('form').getByText(/write a rules.yaml, or ask your operator to set a model/)
  await notice.waitFor()
  await page.getByLabel('Task').press('Control+s')
  await page.getByText('It starts, but the built-in agent will refuse it.').waitFor()
  await notice.getByRole('link', { name: 'Write a rule' }).click()
  const drawer = page.getByRole('dialog', { name: 'New file' })
  const text = drawer.getByRole('textbox', { name: 'Text' })
  const template = await codeIn(text)
  expect(template).toContain('- to: "Order intake"')
  expect(template).toMatch(/^# rules_needed: .*The sentence is: If the total is over 100, send it to Order intake/)
  expect(await findAxeIssues(page)).toEqual([])

  // Errors are at their lines while it is written; what the rules would send is shown before they are saved.
  await writeCode(text, template.replace('todo("', 'tod("'))
  const errors = drawer.getByRole('status', { name: 'Errors of the text' })
  await errors.getByText(/^rules\.yaml, line \d+.*there is no function tod\b/).waitFor()
  const wrong = drawer.locator('.cm-line.wrong')
  expect(await wrong.textContent()).toContain('tod(')
  await errors.getByRole('button').click()
  await page.keyboard.insertText('x')
  await drawer.locator('.cm-line.wrong', { hasText: /^x/ }).waitFor()
  await writeCode(text, `deliveries:\n  - to: Order intake\n    payload: { order_id: '"X"' }`)
  await wrong.waitFor({ state: 'detached' })
  await errors.getByRole('button').waitFor({ state: 'detached' })
  await drawer.getByRole('button', { name: 'Try with the last text' }).click()
  await drawer.getByText('The run would send 1 payload. Nothing was sent.').waitFor()
  expect(await drawer.getByRole('region', { name: 'payload to Order intake' }).textContent()).toContain('"X"')
  expect(await findAxeIssues(page)).toEqual([])
  await writeCode(text, '')
  await drawer.getByRole('link', { name: 'Begin with the webhook sources that the task names' }).waitFor()
  await drawer.getByRole('button', { name: 'fields.total' }).click()
  expect(await codeIn(text)).toBe('fields.total')
  // What is typed fast on a slow machine is not replaced by what the page knew before it.
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 6 })
  const typed = 'deliveries:\n- to: a\n- to: b\n- to: c\n- to: d\n- to: e'
  await writeCode(text, '')
  await page.keyboard.type(typed, { delay: 40 })
  expect(await codeIn(text)).toBe(typed)
  await devtools.detach()
  await writeCode(text, template)
  await drawer.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('link', { name: 'rules.yaml' }).waitFor()
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  await page.getByText('Yes.', { exact: true }).waitFor()
  const decides = /rules.yaml decides what is sent. The built-in agent does not follow/
  await page.getByRole('region', { name: 'Ready to start?' }).getByText(decides).waitFor()
  await page.locator('form').getByText(decides).getByRole('link', { name: 'rules.yaml' }).click()

  // Rules that there are stay, once, before those that are begun with.
  await writeCode(page.getByRole('dialog', { name: 'rules.yaml' }).getByRole('textbox', { name: 'Text' }), '')
  await page.getByRole('link', { name: 'Begin with the webhook sources that the task names' }).click()
  await page.locator('.cm-line', { hasText: /^# deliveries:/ }).waitFor()
  await press(page, 'Save')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('rules with line ends of Windows are as they were saved after what was typed is reverted', async () => {
  const { owner, page, workflowId } = await openFilled()
  const params = { workflow_id: workflowId, file_id: newId() }
  const content = 'deliveries:\r\n  - to: Order intake\r\n'
  await owner.call('saveFile', { params, body: { name: 'rules.yaml', path: [], content, version: null } })
  await show(page, `/workflows/${workflowId}/files?file=${params.file_id}`)
  const drawer = page.getByRole('dialog', { name: 'rules.yaml' })
  const text = drawer.getByRole('textbox', { name: 'Text' })
  await writeCode(text, 'deliveries: []')
  await press(page, 'Revert')
  await page.getByRole('button', { name: 'Revert' }).waitFor({ state: 'detached' })
  expect(await codeIn(text)).toBe(content.replaceAll('\r', ''))
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
})

test('a rejected run leads to what the endpoint answered', async () => {
  const { page } = await openFilled('/runs?status=failed')
  await page.getByRole('row').nth(1).getByRole('link').first().click()
  const answerLink = page.getByRole('link', { name: 'See what the endpoint answered' })
  await answerLink.waitFor()
  expect(
    await page
      .getByText(/answered 422/)
      .filter({ visible: true })
      .allTextContents(),
  ).toHaveLength(1)
  await answerLink.click()
  await page.getByText('Your endpoint answered 422: “The order is not known.”').waitFor()
  await page.getByRole('heading', { name: 'Answer', exact: true }).waitFor()
})
