import { randomUUID } from 'node:crypto'
import { createSetupLink, type Database } from '@workflow-service/database'
import type { Page } from '@workflow-service/testkit/use-browser'

export const PASSWORD = 'seven calm turtles walk'

/** Sets up an organization with a printed link, by default a new one. Resolves to the owner's email address. */
export async function setUp(db: Database, page: Page, { organization = 'Acme', token = '' } = {}): Promise<string> {
  const email = `${randomUUID()}@acme.test`
  await page.goto(`/setup#${token || (await createSetupLink(db, null))}`)
  await page.getByLabel('Organization').fill(organization)
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Create and sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  return email
}
