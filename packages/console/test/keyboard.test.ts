import { expect, test } from '@jest/globals'
import { createSetupLink } from '@workflow-service/database'
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
  await keyboard.type('order_id: A-1003\ncustomer: Ada\ntotal: 1')
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

test('the keyboard alone signs in, fixes a source, makes a workflow, invites a person, makes and revokes a key, and signs out', async () => {
  const page = await browser.newPage({ baseURL: service.url })
  const { keyboard } = page
  const heading = async (name: string) => await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
  const field = (name: string) => page.getByRole('textbox', { name, exact: true })
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const enter = async (target: Locator, text: string) => {
    await tabTo(target)
    await keyboard.type(text)
  }
  const press = async (target: Locator, key = 'Enter') => {
    await tabTo(target)
    await keyboard.press(key)
  }
  const goTo = async (name: string) => {
    await keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Find/ }).and(page.locator(':focus')).waitFor()
    await keyboard.type(name)
    await page.getByRole('option', { name }).first().waitFor()
    await keyboard.press('Enter')
    await heading(name)
  }
  const signOut = async () => {
    await press(button('Account: Ada Lovelace'))
    await page.getByRole('menuitem', { name: 'Account' }).and(page.locator(':focus')).waitFor()
    await keyboard.press('ArrowUp')
    await page.getByRole('menuitem', { name: 'Sign out' }).and(page.locator(':focus')).waitFor()
    await keyboard.press('Enter')
    await heading('Sign in')
  }

  await page.goto(`/setup#${await createSetupLink(service.db, null)}`)
  await enter(field('Organization'), 'Acme')
  await enter(field('Your name'), 'Ada Lovelace')
  await enter(field('Email'), 'ada@acme.test')
  await enter(page.getByLabel('Password'), 'seven calm turtles walk')
  await keyboard.press('Enter')
  await heading('Overview')
  await signOut()
  await enter(field('Email'), 'ada@acme.test')
  await enter(page.getByLabel('Password'), 'seven calm turtles walk')
  await keyboard.press('Enter')
  await heading('Overview')

  // A failed verification moves the focus to the field that it is about.
  await goTo('Webhook sources')
  await press(page.getByRole('link', { name: 'New webhook source' }))
  await enter(field('Name'), 'Order intake')
  await enter(field('URL'), `${service.endpoint.url}/orders`)
  service.endpoint.answerWith({ status: 500 })
  await keyboard.press('Control+s')
  const failedUrl = page.locator('[aria-invalid="true"]').and(field('URL'))
  await failedUrl.and(page.locator(':focus')).waitFor()
  service.endpoint.answerWith({ body: 'Order accepted.' })
  await keyboard.press('Control+s')
  await heading('Order intake')
  const secret = page.getByRole('dialog', { name: 'Signing secret of Order intake' })
  await press(secret.getByRole('button', { name: 'I stored it' }))
  await secret.waitFor({ state: 'detached' })

  await goTo('People')
  await press(button('Add person'))
  const person = page.getByRole('dialog', { name: 'Add person' })
  await enter(person.getByRole('textbox', { name: 'Email' }), 'grace@acme.test')
  await enter(person.getByRole('textbox', { name: 'First name' }), 'Grace')
  await keyboard.press('Control+s')
  await press(page.getByRole('dialog', { name: 'Link for Grace' }).getByRole('button', { name: 'Done' }))

  await goTo('Workflows')
  await press(page.getByRole('link', { name: 'New workflow' }))
  await enter(field('Name'), 'Forward orders')
  await enter(page.getByLabel('Task'), 'An order came in. Send it to Order intake.')
  await keyboard.press('Control+s')
  await heading('Forward orders')
  await press(button('Switch on and allow starts'))
  await page.getByRole('status').filter({ hasText: 'Yes.' }).waitFor()
  const tabs = page.getByRole('navigation', { name: 'Parts of the workflow' })
  await press(tabs.getByRole('link', { name: 'People' }))
  await enter(page.getByRole('combobox', { name: 'Add a person' }), 'grace')
  await page.getByRole('option', { name: /Grace/ }).waitFor()
  await keyboard.press('Enter')
  await button('Remove Grace').waitFor()

  await goTo('API keys')
  await press(button('New key'))
  await enter(page.getByRole('dialog', { name: 'New API key' }).getByRole('textbox', { name: 'Name' }), 'Shop')
  await keyboard.press('Control+s')
  await press(button('I stored it'))
  await press(button('Revoke'))
  await press(page.getByRole('dialog', { name: 'Revoke Shop?' }).getByRole('button', { name: 'Revoke key' }))
  await page.getByRole('cell', { name: 'Revoked' }).waitFor()

  await goTo('Order intake')
  await signOut()
  expect(new URL(page.url()).pathname).toBe('/sign-in')
}, 120_000)
