import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import { createSetupLink } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { findAxeIssues, type Locator } from '@workflow-service/testkit/use-browser'
import { FAILED, fillVolume, NEEDLE } from './support/fill-volume.ts'
import { hold } from './support/hold.ts'
import { PASSWORD, setUp } from './support/set-up.ts'
import { follow, show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser } = useConsole()

const MAX_TABS = 80

/** Presses Tab until the element has the focus, as a person does who uses no pointer. */
async function tabTo(target: Locator): Promise<void> {
  const page = target.page()
  await target.waitFor()
  // Looked for once: a search by role takes longer than the key.
  const element = await target.elementHandle()
  const isFocused = async () => await element?.evaluate((each) => each === each.ownerDocument.activeElement)
  for (let presses = 0; presses < MAX_TABS && !(await isFocused()); presses += 1) await page.keyboard.press('Tab')
  expect(await isFocused()).toBe(true)
}

test('with the keyboard alone, a stranger becomes owner, fixes a source, starts a workflow, resends its delivery, invites a person, and makes and revokes a key', async () => {
  const page = await browser.newPage({
    reducedMotion: 'no-preference',
    baseURL: service.url,
    viewport: { width: 1280, height: 900 },
  })
  const { keyboard } = page
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const link = (name: string) => page.getByRole('link', { name })
  const field = (name: string) => page.getByRole('textbox', { name, exact: true })
  const heading = async (name: string) => await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
  const hasFocus = (target: Locator) => target.and(page.locator(':focus')).waitFor()
  const enter = async (target: Locator, text: string) => {
    await tabTo(target)
    await keyboard.insertText(text)
  }
  const press = async (target: Locator, key = 'Enter') => {
    await tabTo(target)
    await keyboard.press(key)
  }
  const goTo = async (name: string) => {
    await keyboard.press('Control+k')
    await hasFocus(page.getByRole('combobox', { name: /^Find/ }))
    await keyboard.type(name)
    await page.getByRole('option', { name }).first().waitFor()
    await keyboard.press('Enter')
    await heading(name)
  }
  const signOut = async () => {
    await press(button('Account: Ada Lovelace'))
    await hasFocus(page.getByRole('menuitem', { name: 'Account' }))
    await keyboard.press('ArrowUp')
    await hasFocus(page.getByRole('menuitem', { name: 'Sign out' }))
    await keyboard.press('Enter')
    await heading('Sign in')
  }

  // The printed link.
  await page.goto(`/setup#${await createSetupLink(service.db, null)}`)
  await hasFocus(field('Organization'))
  await keyboard.type('Acme')
  await enter(field('Your name'), 'Ada Lovelace')
  await enter(field('Email'), 'keys@acme.test')
  await enter(page.getByLabel('Password'), PASSWORD)
  await keyboard.press('Enter')
  await hasFocus(page.getByRole('heading', { name: 'Overview' }))
  await signOut()
  await enter(field('Email'), 'keys@acme.test')
  await enter(page.getByLabel('Password'), PASSWORD)
  await keyboard.press('Enter')
  await heading('Overview')

  // A webhook source whose endpoint fails at first: nothing is saved, and the cause is at the field.
  service.endpoint.answerWith({ status: 500 })
  await press(link('New webhook source'))
  await enter(field('Name'), 'Order intake')
  await enter(field('URL'), `${service.endpoint.url}/orders`)
  await press(page.getByText('More settings: signed, sent at once'))
  expect(Buffer.from(await field('Secret').inputValue(), 'base64')).toHaveLength(32)
  await keyboard.press('Control+s')
  await hasFocus(field('URL').and(page.locator('[aria-invalid="true"]')))
  await page
    .getByRole('alert')
    .getByText(
      /Your endpoint answered 500\. It must answer the verification request with a 2xx status\. Nothing was saved\./,
    )
    .waitFor()
  await press(page.getByText('See the request and the answer'))
  await page.getByText('service.webhook.verification').first().waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  service.endpoint.answerWith({ body: 'Order accepted.' })
  await press(button('Verify again and create'))
  const secret = page.getByRole('dialog', { name: 'Signing secret of Order intake' })
  await press(secret.getByRole('button', { name: 'I stored it' }))
  await secret.waitFor({ state: 'detached' })
  await hasFocus(page.getByRole('heading', { name: 'Order intake', level: 1 }))
  await link('test request').waitFor()
  expect(await page.getByText('Last verification').count()).toBe(0)

  // A workflow that names it. It says why it cannot start, and fixes that.
  await press(link('Use it in a workflow'))
  await heading('New workflow')
  await enter(field('Name'), 'Forward orders')
  expect(await field('Task').inputValue()).toBe('Send the text to Order intake.')
  await keyboard.press('Control+s')
  await heading('Forward orders')
  const readiness = page.getByRole('region', { name: 'Ready to start?' })
  await readiness.getByRole('listitem').first().waitFor()
  expect(await readiness.getByRole('listitem').allTextContents()).toEqual(['Missing: It is switched off'])
  await page.getByRole('switch', { name: 'Switched off' }).waitFor()
  await press(readiness.getByRole('button', { name: 'Switch on and allow starts' }))
  await hasFocus(button('Start'))
  await page.getByRole('switch', { name: 'Switched on' }).waitFor()
  expect(await readiness.textContent()).toBe('Ready to start?Yes.')

  // What it would send, without sending it.
  await page.getByText('This really sends to Order intake.').waitFor()
  expect(await field('Text').inputValue()).toContain('order_id: A-1001')
  expect(await page.getByRole('combobox', { name: 'Session' }).count()).toBe(0)
  const requests = service.endpoint.requests.length
  await press(button('Try without sending'))
  await page.getByText('The run would send 1 payload. Nothing was sent.').waitFor()
  expect(await page.getByRole('region', { name: 'payload to Order intake' }).textContent()).toContain('"A-1001"')
  expect(service.endpoint.requests).toHaveLength(requests)
  expect(await findAxeIssues(page)).toEqual([])

  // Its run arrives while the page is open.
  const endpointAnswer = Promise.withResolvers<{ body: string }>()
  service.endpoint.answerWith(() => endpointAnswer.promise)
  await press(field('Text'), 'Control+Enter')
  await heading('Run of Forward orders')
  const timeline = page.getByRole('list', { name: 'Timeline' })
  await timeline.getByRole('heading', { name: /Sent to Order intake/ }).waitFor()
  endpointAnswer.resolve({ body: 'Order accepted.' })
  await timeline.getByRole('heading', { name: 'Succeeded' }).waitFor()
  await timeline.getByText('Order intake: from the text it took order_id, customer, total').waitFor()
  expect(await timeline.textContent()).toContain("The endpoint's answer:\nOrder accepted.Succeeded")

  // Its delivery, the same payload again, and both in the log.
  await press(link('Open the delivery'))
  await heading('Delivery to Order intake')
  const first = page.url()
  await press(button('Send again'))
  const confirmation = page.getByRole('dialog', { name: 'Send again to Order intake' })
  await press(confirmation.getByRole('button', { name: 'Send again' }))
  await page.waitForURL((url) => url.href !== first)
  await heading('Resent delivery to Order intake')
  await page.getByRole('status').filter({ hasText: 'Accepted' }).first().waitFor()
  const payloads = service.endpoint.requests.slice(-2).map(({ json }) => json)
  expect(payloads[0]).toEqual({ order_id: 'A-1001', customer: 'Ada Lovelace', total: 129.5 })
  expect(payloads[1]).toEqual(payloads[0])
  await press(link('Logs of Order intake'))
  const row = page.getByRole('rowheader').first()
  await row.waitFor()
  await keyboard.press('j')
  await keyboard.press('Enter')
  const drawer = page.getByRole('dialog', { name: 'Resent delivery to Order intake' })
  await drawer.waitFor()
  await keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await hasFocus(row.getByRole('link'))
  await goTo('Overview')
  await page.getByText('Nothing of the last 7 days needs attention.').waitFor()
  expect(await page.getByRole('heading', { name: 'First steps' }).count()).toBe(0)

  await goTo('People')
  await press(button('Add person'))
  const person = page.getByRole('dialog', { name: 'Add person' })
  await enter(person.getByRole('textbox', { name: 'Email' }), 'grace@acme.test')
  await enter(person.getByRole('textbox', { name: 'First name' }), 'Grace')
  await keyboard.press('Control+s')
  await press(page.getByRole('dialog', { name: 'Link for Grace' }).getByRole('button', { name: 'Done' }))
  await goTo('Forward orders')
  await press(page.getByRole('navigation', { name: 'Parts of the workflow' }).getByRole('link', { name: 'People' }))
  await enter(page.getByRole('combobox', { name: 'Add a person' }), 'grace')
  await page.getByRole('option', { name: /Grace/ }).waitFor()
  await keyboard.press('Enter')
  await button('Remove Grace').waitFor()

  await goTo('API keys')
  await press(button('New key'))
  await enter(page.getByRole('dialog', { name: 'New API key' }).getByRole('textbox', { name: 'Name' }), 'Shop')
  await keyboard.press('Control+s')
  await press(button('I stored it'))
  await press(button('Revoke Shop'))
  await press(page.getByRole('dialog', { name: 'Revoke Shop?' }).getByRole('button', { name: 'Revoke key' }))
  await page.getByRole('cell', { name: 'Revoked' }).waitFor()
  // The button of the row is gone.
  await page.getByRole('heading', { name: 'API keys' }).and(page.locator(':focus')).waitFor()
})

const isListOfWorkflows = ({ pathname }: URL) => pathname === APP_ROUTES.listWorkflows.path

test('a person of two organizations sees one at a time, exports one and deletes it', async () => {
  browser.expectProblem(/40[134]/)
  const page = await browser.newPage({ reducedMotion: 'no-preference', baseURL: service.url })
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const change = async (from: string, to: string) => {
    await button(`Organization: ${from}`).click()
    const loaded = page.waitForEvent('load')
    await page.getByRole('menuitem', { name: to }).click()
    await loaded
    await button(`Organization: ${to}`).waitFor()
  }

  /** Adds a workflow as another person of the organization. */
  const addWorkflow = async (organizationId: string, name: string) => {
    const { call } = await service.signIn({ organizationId })
    await call('createWorkflow', { body: { id: randomUUID(), name, description: 'Do it.', scope: 'company_wide' } })
  }
  const email = await setUp(service.db, page, { organization: 'Northwind' })
  const { rows } = await service.db.pool.query<{ account_id: string; organization_id: string }>(
    'SELECT account_id, organization_id FROM users WHERE email = $1',
    [email],
  )
  const { account_id: accountId = '', organization_id: northwind = '' } = rows[0] ?? {}
  const { organizationId: acme } = await service.signIn()
  await service.db.pool.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name, account_id, role)
     VALUES ($1, $2, $3, 'Ada', 'Lovelace', $4, 'member')`,
    [randomUUID(), acme, email, accountId],
  )
  await addWorkflow(northwind, 'Pack parcels')
  await addWorkflow(acme, 'Paint fences')

  // Nothing of one is visible in the other.
  await show(page, '/workflows')
  await page.getByRole('rowheader', { name: 'Pack parcels' }).waitFor()
  expect(await page.getByText('Paint fences').count()).toBe(0)
  const releaseList = await hold(page, isListOfWorkflows)
  // It hears of its changes at once.
  const stream = page.waitForRequest((request) => request.url().endsWith(APP_ROUTES.streamEvents.path))
  await change('Northwind', 'Acme')
  await stream
  await page.getByRole('link', { name: 'Workflows', exact: true }).click()
  await page.getByText('Loading workflows').waitFor()
  expect(await page.getByText('Pack parcels').count()).toBe(0)
  releaseList()
  await page.getByRole('rowheader', { name: 'Paint fences' }).waitFor()
  expect(await page.getByText('Pack parcels').count()).toBe(0)
  // A link of an email leads to its organization.
  await show(page, `/workflows?organization=${northwind}`)
  await page.getByRole('rowheader', { name: 'Pack parcels' }).waitFor()
  expect(page.url()).toBe(`${service.url}/workflows`)

  // A sign-in that ends is renewed in the organization of the page.
  await follow(page, '/workflows/new')
  await page.getByLabel('Name').fill('Count parcels')
  await page.getByLabel('Task').fill('Do it.')
  await page.context().clearCookies()
  // Another browser was in the other one since.
  await service.db.pool.query('UPDATE accounts SET last_organization_id = $2 WHERE id = $1', [accountId, acme])
  await button('Create workflow').click()
  const renewal = page.getByRole('dialog', { name: 'Sign in again' })
  await renewal.getByLabel('Password').fill(PASSWORD)
  await renewal.getByRole('button', { name: 'Sign in' }).click()
  await renewal.waitFor({ state: 'detached' })
  await button('Create workflow').click()
  await page.getByRole('heading', { name: 'Count parcels', level: 1 }).waitFor()
  await button('Organization: Northwind').waitFor()

  // A new one comes back to the page.
  await page.context().clearCookies()
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
  await renewal.getByRole('button', { name: 'Cancel' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await button('Sign in').click()
  await page.getByRole('heading', { name: 'Count parcels', level: 1 }).waitFor()

  // What a tab shows of one is not saved in the other.
  const tab = await page.context().newPage()
  await show(tab, '/workflows/new')
  await change('Northwind', 'Acme')
  await tab.getByLabel('Name', { exact: true }).fill('Sweep floors')
  await tab.getByRole('button', { name: 'Create workflow' }).click()
  await tab.getByText('You have changed to another organization since. Reload the page.').waitFor()
  await tab.close()
  // A change belongs to the new organization while something is still being read.
  const releaseCount = await hold(page, `**${APP_ROUTES.countApprovals.path}*`)
  await change('Acme', 'Northwind')

  // The deletion of an organization asks for the name.
  await follow(page, '/organization')
  const downloading = page.waitForEvent('download')
  await button('Export the manifest').click()
  const file = await downloading
  expect(await readFile(await file.path(), 'utf8')).toContain('Pack parcels')
  await button('Delete the organization').click()
  const dialog = page.getByRole('dialog', { name: 'Delete Northwind?' })
  await dialog.getByRole('textbox').fill('Northwin')
  await dialog.getByRole('button', { name: 'Delete everything' }).click()
  await dialog.getByText('Type “Northwind” exactly as shown.').waitFor()
  // The page reads something while the response is on its way, and asks for the password as the sign-in has ended.
  await page.route(`**${APP_ROUTES.deleteOrganization.path}`, async (route) => {
    if (route.request().method() !== 'DELETE') return await route.fallback()
    const response = await route.fetch({ headers: { ...route.request().headers(), 'sec-fetch-site': 'same-origin' } })
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await renewal.waitFor()
    await route.fulfill({ response })
    releaseCount()
  })
  await dialog.getByRole('textbox').fill('Northwind')
  await dialog.getByRole('button', { name: 'Delete everything' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await button('Sign in').click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(await page.getByText('Northwind').count()).toBe(0)
  expect(await page.getByRole('dialog').count()).toBe(0)
})

test('an operator of 10,000 deliveries finds one order, sends all that were answered 500 again with 4 clicks, and has nothing left to do', async () => {
  const owner = await service.signIn()
  const sourceId = await fillVolume(service, owner)
  service.endpoint.requests.length = 0
  const page = await browser.newPage(owner.context)
  await page.addInitScript(
    `document.addEventListener('click', ({ isTrusted }) => isTrusted && (sessionStorage.clicks = 1 + Number(sessionStorage.clicks ?? 0)), true)`,
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
  await page.getByText(`${FAILED} of ${FAILED}`).waitFor({ timeout: 60_000 })
  const accepted = page.locator('dl > div').filter({ hasText: 'Accepted' })
  await accepted.getByText(`${FAILED}`, { exact: true }).waitFor()
  expect((await clicks()) - before).toBe(4)
  const orders = service.endpoint.requests.map(({ json }) => (json as { order_id: string }).order_id)
  expect([orders.length, new Set(orders).size]).toEqual([FAILED + 1, FAILED + 1])

  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByText('Nothing of the last 7 days needs attention.').waitFor()
  // The same by the list: what was sent again and accepted is not offered.
  await follow(page, `/deliveries?source_id=${sourceId}&status=500`)
  await page.getByRole('button', { name: 'Send all again' }).click()
  await page.getByRole('dialog', { name: 'Nothing to send again' }).getByText('Change the filters').waitFor()
  await waitUntil(async () => (await owner.call('getOverview')).attention.length === 0)
})
