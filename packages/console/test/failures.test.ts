import { randomUUID } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import { startProxy, waitUntil } from '@workflow-service/testkit'
import { findAxeIssues, type Locator, type Page } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { findIssues } from './support/find-issues.ts'
import { PAGES } from './support/pages.ts'
import { navigate, settle, show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser, open } = useConsole()

/** Pages that show nothing but what the layout has read, or that read nothing before a form is sent. */
const READ_NOTHING = [
  'sign-in',
  'no-such-page',
  'workflows-new',
  'sources-new',
  'lookups-new',
  'workflows-id-triggers',
  'workflows-id-people',
  'workflows-id-files',
  'workflows-id-schedule',
]
const ME = APP_ROUTES.getMe.path
/** What a list says that is empty. */
const EMPTY = /^(no |nothing|it has never)/i

/** Answers every request for data with an error while `status` is set, except those of `healthy` paths. */
async function interceptApi(page: Page) {
  const api = { status: 0, healthy: [] as string[], requestId: '' }
  await page.route('**/app/**', async (route) => {
    const { pathname } = new URL(route.request().url())
    if (api.status === 0 || api.healthy.includes(pathname)) return await route.continue()
    const headers = { 'x-request-id': api.requestId }
    // A proxy in front of the service answers 503 in words of its own.
    if (api.status === 503) return await route.fulfill({ status: 503, headers, body: 'No server is available.' })
    const error = { code: 'internal_error', message: 'An unexpected error occurred.', request_id: api.requestId }
    await route.fulfill({ status: api.status, headers, json: { error } })
  })
  return {
    fail(status: number, healthy: string[] = []) {
      Object.assign(api, { status, healthy, requestId: randomUUID() })
      return api
    },
    mend: () => void (api.status = 0),
  }
}

/** Waits for an element while the time of the page leaps: the page repeats failed requests after 1 s and 2 s. */
async function waitFast(target: Locator): Promise<void> {
  await waitUntil(async () => {
    await target.page().clock.fastForward(2_000)
    return (await target.count()) > 0
  })
}

const retryButtons = (part: Page | Locator) => part.getByRole('button', { name: 'Try again' })

/** Presses “Try again” until there is none, those in a drawer before those behind it. */
async function retry(page: Page): Promise<void> {
  const drawer = page.getByRole('dialog')
  if ((await drawer.count()) > 0) {
    await retryButtons(drawer).click()
    await retryButtons(drawer).waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
  }
  await waitUntil(async () => {
    // One that is not there any more has recovered by itself.
    for (const button of await retryButtons(page).all()) await button.click({ timeout: 2_000 }).catch(() => undefined)
    return (await retryButtons(page).count()) === 0
  })
}

/** Resolves to what is wrong about a page whose requests fail, apart from what axe finds. */
async function findFlaws(page: Page, requestId: string): Promise<string[]> {
  const alerts = await page.getByRole('main').getByRole('alert').all()
  const texts = await Promise.all(alerts.map(async (alert) => (await alert.textContent()) ?? ''))
  const headings = await page.getByRole('heading').allTextContents()
  return [
    ...texts.filter((text) => !text.includes(requestId)).map((text) => `without the request id: ${text}`),
    ...(alerts.length === (await retryButtons(page).count()) ? [] : ['an error without “Try again”']),
    ...headings.filter((heading) => EMPTY.test(heading)).map((heading) => `an error shown as empty: ${heading}`),
  ]
}

test('every page whose requests fail shows the request id and “Try again”, never an empty list, and recovers', async () => {
  // React reports the error that takes the place of the whole page.
  browser.expectProblem(/50[03]|AppError/)
  const owner = await service.signIn()
  const filled = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await page.clock.install()
  const api = await interceptApi(page)
  const workflow = APP_ROUTES.getWorkflow.path.replace('{workflow_id}', filled.workflowId)

  async function visit(path: string, healthy: string[], isFirst: boolean): Promise<string[]> {
    if (!isFirst) {
      // The application forgets within 5 minutes what only other pages have read.
      await navigate(page, '/no-such-page')
      await page.clock.fastForward('06:00')
    }
    const failing = api.fail(500, healthy)
    await (isFirst ? page.goto(path) : navigate(page, path))
    await waitFast(retryButtons(page))
    await settle(page)
    const flaws = await findFlaws(page, failing.requestId)
    // An error looks the same on every page, and in every drawer, also that of a proxy.
    const hasDrawer = (await page.getByRole('dialog').count()) > 0
    if (path === '/' || hasDrawer) flaws.push(...(await findIssues(page)))
    if (path === '/') {
      const { requestId } = api.fail(503, healthy)
      await retryButtons(page).last().click()
      const shown = page.getByRole('alert').filter({ hasText: requestId })
      await waitFast(shown.filter({ hasText: 'The server answered with status 503. Wait a moment, then try again.' }))
      await settle(page)
    }
    api.mend()
    await retry(page)
    await page.getByRole('heading', { level: 1 }).waitFor()
    return flaws
  }

  const findings: Record<string, unknown> = {}
  const visits = PAGES.filter(({ name }) => !READ_NOTHING.includes(name)).map(
    ({ name, path }) => [name, path(filled), name.startsWith('workflows-id-') ? [ME, workflow] : [ME]] as const,
  )
  for (const [name, path, healthy] of [['everything', '/', []] as const, ...visits]) {
    const flaws = await visit(path, [...healthy], name === 'everything').catch((error: Error) => [error.message])
    if (flaws.length > 0) findings[name] = flaws
  }
  expect(findings).toEqual({})
})

test('a page whose server dies, or whose network, says so, loses nothing that was typed, and recovers by itself', async () => {
  browser.expectProblem(/ERR_|AppError|Failed to fetch/)
  await using server = await startProxy(service.url)
  const { owner, page } = await open(undefined, { baseURL: server.url })
  const lost = page.getByRole('status').filter({ hasText: 'The connection to the server is lost.' })
  await show(page, '/organization')
  await server.die()
  await lost.waitFor({ timeout: 20_000 })
  const name = page.getByRole('textbox', { name: 'Name' })
  await name.fill('Acme Robotics')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByRole('alert').filter({ hasText: 'The server cannot be reached.' }).waitFor()
  await server.comeBack()
  await lost.waitFor({ state: 'detached', timeout: 20_000 })
  const announcements = page.locator('[data-announcements="true"]')
  await announcements.getByText('The connection is back.').waitFor({ state: 'attached' })
  expect(await name.inputValue()).toBe('Acme Robotics')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  expect((await owner.call('getOrganization')).name).toBe('Acme Robotics')

  // A list that could not be read is read when the server is there again.
  await server.die()
  await page.getByRole('link', { name: 'API keys' }).click()
  await page.getByRole('alert').filter({ hasText: 'The server cannot be reached.' }).waitFor()
  await owner.call('createApiKey', { body: { id: randomUUID(), name: 'Shop', scopes: ['read'], expires_at: null } })
  await server.comeBack()
  await page.getByRole('rowheader', { name: 'Shop' }).waitFor({ timeout: 20_000 })

  // Without a connection, a page whose code is not loaded yet keeps the frame.
  await page.context().setOffline(true)
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await lost.waitFor()
  await page.context().setOffline(false)
  await lost.waitFor({ state: 'detached' })
  await retryButtons(page).click()
  await page.getByRole('heading', { name: 'Usage', exact: true }).waitFor()
  // Without a network, the server of the same machine is read all the same.
  await page.evaluate(`window.dispatchEvent(new Event('offline'))`)
  await page.getByRole('link', { name: 'Runs' }).click()
  await page.getByRole('heading', { name: 'Nothing has run yet' }).waitFor()
})
