import { expect, test } from '@jest/globals'
import { createSetupLink } from '@workflow-service/database'
import { findAxeIssues, type Locator, useBrowser } from '@workflow-service/testkit/use-browser'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

test('a stranger becomes owner, fixes a source, starts a workflow, and finds and resends its delivery', async () => {
  const page = await browser.newPage({ baseURL: service.url, viewport: { width: 1280, height: 900 } })
  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const link = (name: string | RegExp) => page.getByRole('link', { name })
  const field = (name: string | RegExp) => page.getByRole('textbox', { name })
  const heading = (name: string | RegExp) => page.getByRole('heading', { name })
  const hasFocus = (target: Locator) => target.and(page.locator(':focus')).waitFor()

  // The printed link.
  await page.goto(`/setup#${await createSetupLink(service.db, null)}`)
  await hasFocus(field('Organization'))
  await field('Organization').fill('Acme')
  await field('Your name').fill('Ada Lovelace')
  await field('Email').fill('ada@acme.test')
  await page.getByLabel('Password').fill('seven calm turtles walk')
  await button('Create and sign in').click()
  await hasFocus(heading('Overview'))

  // A webhook source whose endpoint fails at first: nothing is saved, and the cause is at the field.
  service.endpoint.answerWith({ status: 500 })
  await link('New webhook source').click()
  await field('Name').fill('Order intake')
  await field('URL').fill(`${service.endpoint.url}/orders`)
  await page.getByText('More settings: signed, sent at once').click()
  expect(Buffer.from(await field('Secret').inputValue(), 'base64')).toHaveLength(32)
  await button('Verify and create').click()
  await hasFocus(field('URL').and(page.locator('[aria-invalid="true"]')))
  await page
    .getByRole('alert')
    .getByText(/Your endpoint answered 500, an error on its side\. It must answer with a status from 200 to 299/)
    .waitFor()
  await page.getByText('See the request and the answer').click()
  await page.getByText('service.webhook.verification').first().waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  service.endpoint.answerWith({ body: 'Order accepted.' })
  await button('Verify again and create').click()
  await button('I stored it').click()
  await heading('Order intake').waitFor()
  await link('test request').waitFor()
  expect(await page.getByText('Last verification').count()).toBe(0)

  // A workflow that names it. It says why it cannot start, and fixes that.
  await link('Use it in a workflow').click()
  await heading('New workflow').waitFor()
  await field('Name').fill('Forward orders')
  expect(await field('Task').inputValue()).toBe('Send the text to Order intake.')
  await button('Create workflow').click()
  await heading('Forward orders').waitFor()
  const readiness = page.getByRole('region', { name: 'Ready to start?' })
  await readiness.getByRole('listitem').first().waitFor()
  expect(await readiness.getByRole('listitem').allTextContents()).toEqual(['Missing: It is switched off'])
  await page.getByRole('switch', { name: 'Switched off' }).waitFor()
  await readiness.getByRole('button', { name: 'Switch on and allow starts' }).click()
  await hasFocus(button(/^Start$/))
  await page.getByRole('switch', { name: 'Switched on' }).waitFor()
  expect(await readiness.textContent()).toBe('Ready to start?Yes.')

  // Its run arrives while the page is open.
  const endpointAnswers = Promise.withResolvers<void>()
  service.endpoint.answerWith(async () => {
    await endpointAnswers.promise
    return { body: 'Order accepted.' }
  })
  await page.getByText('This really sends to Order intake.').waitFor()
  expect(await field('Text').inputValue()).toContain('order_id: A-1001')
  expect(await page.getByRole('combobox', { name: 'Session' }).count()).toBe(0)
  await button('Start').click()
  await heading('Run of Forward orders').waitFor()
  const timeline = page.getByRole('list', { name: 'Timeline' })
  await timeline.getByRole('heading', { name: /Sent to Order intake/ }).waitFor()
  endpointAnswers.resolve()
  await timeline.getByRole('heading', { name: 'Succeeded' }).waitFor()
  await timeline.getByText('Order intake: from the text it took order_id, customer, total').waitFor()
  expect(await timeline.textContent()).toContain("The endpoint's answer:\nOrder accepted.Succeeded")

  // Its delivery, and the same payload again.
  await link('Open the delivery').click()
  await heading('Delivery to Order intake').waitFor()
  const first = page.url()
  await button('Send again').click()
  const confirmation = page.getByRole('dialog', { name: 'Send again to Order intake' })
  await confirmation.getByRole('button', { name: 'Send again' }).click()
  await confirmation.waitFor({ state: 'detached' })
  await page.waitForURL((url) => url.href !== first)
  await heading('Resent delivery to Order intake').waitFor()
  await page.getByRole('status').filter({ hasText: 'Accepted' }).first().waitFor()
  const payloads = service.endpoint.requests.slice(-2).map(({ json }) => json)
  expect(payloads[0]).toEqual({ order_id: 'A-1001', customer: 'Ada Lovelace', total: 129.5 })
  expect(payloads[1]).toEqual(payloads[0])
  await link('Overview').click()
  await page.getByText('Nothing failed in the last 7 days.').waitFor()
  expect(await heading('First steps').count()).toBe(0)
}, 120_000)
