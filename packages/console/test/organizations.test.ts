import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { createSetupLink } from '@workflow-service/database'
import { type Page, useBrowser } from '@workflow-service/testkit/use-browser'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

test('a person of two organizations sees one at a time, changes the password, exports one and deletes it', async () => {
  browser.expectProblem(/40[134]/)
  const page = await browser.newPage({ baseURL: service.url })
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const email = `${randomUUID()}@acme.test`
  const oldPassword = 'seven calm turtles walk'
  const newPassword = 'nine loud herons dive'

  /** Adds a workflow as another person of the organization. */
  const addWorkflow = async (organizationId: string, name: string) => {
    const { call } = await service.signIn({ organizationId })
    const id = randomUUID()
    await call('createWorkflow', { body: { id, name, description: 'Do it.', scope: 'company_wide' } })
    return id
  }
  await page.goto(`/setup#${await createSetupLink(service.db, null)}`)
  await page.getByLabel('Organization').fill('Northwind')
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(oldPassword)
  await button('Create and sign in').click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
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
  const workflowId = await addWorkflow(northwind, 'Pack parcels')
  await addWorkflow(acme, 'Paint fences')

  // Nothing of one is visible in the other, also by its address.
  await show(page, '/workflows')
  await page.getByRole('rowheader', { name: 'Pack parcels' }).waitFor()
  expect(await page.getByText('Paint fences').count()).toBe(0)
  await button('Organization: Northwind').click()
  await page.getByRole('menuitem', { name: 'Acme' }).click()
  await button('Organization: Acme').waitFor()
  await page.getByRole('link', { name: 'Workflows', exact: true }).click()
  await page.getByRole('rowheader', { name: 'Paint fences' }).waitFor()
  expect(await page.getByText('Pack parcels').count()).toBe(0)
  await page.goto(`/workflows/${workflowId}`)
  await page.getByRole('heading', { name: 'Not found', level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('parcels')
  await page.getByText('Nothing found').waitFor()
  await page.keyboard.press('Escape')
  await page.goto('/nowhere')
  await page.getByRole('heading', { name: 'Page not found', level: 1 }).waitFor()
  await page.getByRole('main').getByRole('link', { name: 'Overview' }).click()
  await button('Organization: Acme').click()
  await page.getByRole('menuitem', { name: 'Northwind' }).click()
  await button('Organization: Northwind').waitFor()

  // Another password ends the other sign-ins.
  const elsewhere = await browser.newPage({ baseURL: service.url })
  const signIn = async (tab: Page, password: string) => {
    await tab.getByLabel('Email').fill(email)
    await tab.getByLabel('Password').fill(password)
    await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  await elsewhere.goto('/sign-in')
  await signIn(elsewhere, oldPassword)
  await elsewhere.getByRole('heading', { name: 'Overview' }).waitFor()
  await show(page, '/account')
  await page.getByLabel('New password').fill(newPassword)
  await button('Change password').click()
  await page.getByText('Password changed. Every other sign-in has ended.').first().waitFor()
  await elsewhere.goto('/account')
  await elsewhere.getByRole('heading', { name: 'Sign in' }).waitFor()
  await signIn(elsewhere, oldPassword)
  await elsewhere.getByRole('alert').waitFor()
  await signIn(elsewhere, newPassword)
  await elsewhere.getByRole('heading', { name: 'Account', exact: true }).waitFor()

  // The manifest holds this organization only. Its deletion asks for the name.
  await show(page, '/organization')
  const downloading = page.waitForEvent('download')
  await button('Export the manifest').click()
  const file = await downloading
  const manifest = await readFile(await file.path(), 'utf8')
  expect(manifest).toContain('Pack parcels')
  expect(manifest).not.toContain('Paint fences')
  await button('Delete the organization').click()
  const dialog = page.getByRole('dialog', { name: 'Delete Northwind?' })
  await dialog.getByRole('textbox').fill('Northwin')
  await dialog.getByRole('button', { name: 'Delete everything' }).click()
  await dialog.getByText('Type “Northwind” exactly as shown.').waitFor()
  await dialog.getByRole('textbox').fill('Northwind')
  await dialog.getByRole('button', { name: 'Delete everything' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await signIn(page, newPassword)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(await page.getByText('Northwind').count()).toBe(0)
}, 120_000)
