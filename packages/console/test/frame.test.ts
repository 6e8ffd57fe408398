import { randomUUID } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import { createSetupLink } from '@workflow-service/database'
import { findAxeIssues, type Page } from '@workflow-service/testkit/use-browser'
import { findScrolledSideways } from './support/find-issues.ts'
import { hold } from './support/hold.ts'
import { PASSWORD, setUp } from './support/set-up.ts'
import { follow, settle, show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser, open, openFilled } = useConsole()

const field = (page: Page, name: string) => page.getByLabel(name, { exact: true })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const status = async (page: Page, text: string) => await page.getByText(text, { exact: true }).first().waitFor()

async function newVisitor() {
  return await browser.reusePage({ baseURL: service.url })
}

/** Sets up an organization; resolves to the owner's page and email address. */
async function newOwner() {
  const page = await newVisitor()
  return { page, email: await setUp(service.db, page) }
}

describe('sign-in', () => {
  test('goes to the page that was wanted, never to another host, and shows one message for every failure', async () => {
    browser.expectProblem(/401/)
    const { email } = await newOwner()
    const page = await newVisitor()
    await page.goto('/keys')
    await field(page, 'Email').fill(email)
    await field(page, 'Password').fill('not the password')
    await button(page, 'Sign in').click()
    await page.getByRole('alert').waitFor()
    expect(await field(page, 'Email').inputValue()).toBe(email)
    const password = field(page, 'Password')
    await password.fill(PASSWORD)
    expect(await password.getAttribute('type')).toBe('password')
    await button(page, 'Show').click()
    expect(await password.getAttribute('type')).toBe('text')
    expect(await password.inputValue()).toBe(PASSWORD)
    await button(page, 'Hide').click()
    expect(await password.getAttribute('type')).toBe('password')
    await button(page, 'Sign in').click()
    await page.getByRole('heading', { name: 'API keys', exact: true }).waitFor()
    // A tab signs out after another one has.
    const ended = { error: { code: 'unauthorized', message: 'Sign in first.' } }
    await page.route(`**${APP_ROUTES.signOut.path}`, (route) => route.fulfill({ status: 401, json: ended }))
    await page.getByRole('button', { name: 'Account: Ada Lovelace' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()

    const other = await newVisitor()
    await other.goto(`/sign-in?next=${encodeURIComponent('//elsewhere.test/')}`)
    await field(other, 'Email').fill(email)
    await field(other, 'Password').fill(PASSWORD)
    const limited = { error: { code: 'rate_limited', message: 'Too many failed attempts. Try again in 5 minutes.' } }
    const { path } = APP_ROUTES.signIn
    await other.route(`**${path}`, (route) => route.fulfill({ status: 429, json: limited }), { times: 1 })
    await button(other, 'Sign in').click()
    await other.getByRole('alert').filter({ hasText: limited.error.message }).waitFor()
    await button(other, 'Sign in').click()
    await other.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(new URL(other.url()).origin).toBe(service.url)
  })

  test('says in words what a field needs, and the next step after an error of a provider', async () => {
    browser.expectProblem(/422/)
    const page = await newVisitor()
    await page.goto(`/setup#${await createSetupLink(service.db, null)}`)
    await field(page, 'Email').fill('pat')
    await button(page, 'Create and sign in').click()
    await status(page, 'Enter an email address.')
    await status(page, 'Must have at least 12 characters.')
    expect(await page.getByText('Required.', { exact: true }).count()).toBe(2)
    await field(page, 'Email').fill('pat@acme.test')
    await page.getByText('Enter an email address.').waitFor({ state: 'detached' })

    for (const [code, text] of [
      ['oidc_unavailable', 'cannot be reached'],
      ['oidc_failed', 'was not completed'],
      ['oidc_not_invited', 'which the provider must have verified'],
    ] as const) {
      await page.goto(`/sign-in?error=${code}`)
      expect(await page.getByRole('alert').textContent()).toContain(text)
    }
  })

  test('that has ended is renewed over the page without losing what was typed, and is not called a lost connection', async () => {
    browser.expectProblem(/401/)
    const { page, email } = await newOwner()
    await follow(page, '/organization')
    await field(page, 'Name').fill('Acme Robotics')
    await page.context().clearCookies()
    await button(page, 'Save').click()
    const dialog = page.getByRole('dialog', { name: 'Sign in again' })
    await dialog.getByLabel('Password').fill(PASSWORD)
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await field(page, 'Name').inputValue()).toBe('Acme Robotics')
    await button(page, 'Save').click()
    await status(page, 'Saved.')

    // An admin ends it.
    const { rows } = await service.db.pool.query<{ organization_id: string }>(
      `DELETE FROM sign_ins USING accounts WHERE accounts.id = account_id AND accounts.email = $1 RETURNING organization_id`,
      [email],
    )
    // Twice: a stream that fails once is only renewed.
    for (let times = 0; times < 2; times += 1) {
      // By its status: the response to the page's first stream may still be on its way.
      const refused = page.waitForResponse(
        (response) => response.url().endsWith(APP_ROUTES.streamEvents.path) && response.status() === 401,
      )
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
      await refused
    }
    await dialog.getByLabel('Password').fill(PASSWORD)
    expect(await page.getByText('The connection to the server is lost.').count()).toBe(0)
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.waitFor({ state: 'detached' })
    // It hears of changes again.
    const admin = await service.signIn({ role: 'admin', organizationId: rows[0]?.organization_id ?? '' })
    const { version } = await admin.call('getOrganization')
    await admin.call('saveOrganization', { body: { name: '🚀 Renamed', version } })
    await page.getByRole('banner').getByText('🚀 Renamed').waitFor()
    expect(await page.getByRole('banner').locator('.avatar').textContent()).toBe('🚀')
    expect(await page.getByText('The connection to the server is lost.').count()).toBe(0)
  })
})

test('the end of an id, which pages show, has its whole id on hover, and is not searched in vain', async () => {
  const { owner, page, runId, sessionId, deliveryId } = await openFilled('/sessions')
  await page.getByTitle(`Copy ${sessionId}`, { exact: true }).waitFor()
  await follow(page, `/runs/${runId}`)
  await page.getByTitle(sessionId, { exact: true }).waitFor()

  // What a dialog says is not outside of it, where everything is inert.
  await follow(page, `/deliveries?open=${deliveryId}`)
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("denied"))')
  await page.getByTitle(`Copy ${deliveryId}`, { exact: true }).click()
  const refused = page.getByRole('alert').getByText('The browser does not let this page copy.')
  await refused.waitFor()
  await button(page, 'Dismiss').click()
  await refused.waitFor({ state: 'detached' })
  await page.evaluate('navigator.clipboard.writeText = () => Promise.resolve()')
  await page.getByTitle(`Copy ${deliveryId}`, { exact: true }).click()
  await page.locator('dialog [aria-live]').getByText('Copied.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('Control+k')
  const search = page.getByRole('combobox', { name: /^Find/ })
  await search.fill(runId.slice(-8))
  await page.getByRole('option', { name: /Delivery to Order intake/ }).waitFor()
  await search.fill('00c0ffee')
  await page.getByRole('status').getByText('ids as a whole').waitFor()
  await search.fill(runId)
  expect(await page.getByRole('option', { name: /Run/ }).textContent()).toContain('Forward orders')

  // Enter does not open what appears after nothing was found.
  await search.fill('Parcels')
  await page.keyboard.press('Enter')
  await page.getByRole('status').getByText('Nothing found').waitFor()
  const parcels = { id: randomUUID(), name: 'Parcels', description: 'Do it.', scope: 'company_wide' } as const
  await owner.call('createWorkflow', { body: parcels })
  await page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`)
  await page.getByRole('option', { name: /Parcels/ }).waitFor()

  // Enter does not open what another text has found, and waits for what this one finds.
  const release = await hold(page, '**/app/**')
  await search.fill('Weekly')
  await page.keyboard.press('Enter')
  release()
  await page.getByRole('heading', { name: 'Weekly report' }).waitFor()
})

test('a newer link works in the tab in which an older one could not be used', async () => {
  browser.expectProblem(/40[04]/)
  const page = await newVisitor()
  // The first one was cut off, or written by hand.
  for (const token of ['no%', 'no-such-token']) {
    await page.goto(`/setup#${token}`)
    await page.getByRole('heading', { name: 'This link cannot be used' }).waitFor()
  }
  // Only the fragment differs: the browser does not load the page again.
  await setUp(service.db, page)
  expect(new URL(page.url()).pathname).toBe('/')
})

test('an invited person joins with the link and sees no admin pages', async () => {
  browser.expectProblem(/401/)
  const { page } = await newOwner()
  await follow(page, '/people')
  await button(page, 'Add person').click()
  await field(page, 'Email').fill(`${randomUUID()}@acme.test`)
  await button(page, 'Add').click()
  const link = await page.getByRole('region', { name: 'link' }).textContent()
  const invited = await newVisitor()
  await invited.route(`**${APP_ROUTES.getSetup.path}`, (route) =>
    route.fulfill({ json: { needs_setup: false, has_oidc: true } }),
  )
  await invited.goto(`/link${new URL(String(link)).hash}`)
  const provider = invited.getByRole('link', { name: 'New here? Join with your organization’s provider' })
  expect(await provider.getAttribute('href')).toBe(APP_ROUTES.startOidc.path)
  await invited.getByText('None, if you have just signed in with your provider.').waitFor()
  await field(invited, 'Your name').fill('Grace Hopper')
  await field(invited, 'Password').fill('short')
  await button(invited, 'Accept and sign in').click()
  expect(await field(invited, 'Password').and(invited.locator(':focus')).getAttribute('aria-invalid')).toBe('true')
  await field(invited, 'Password').fill(PASSWORD)
  await button(invited, 'Accept and sign in').click()
  await invited.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(await invited.getByRole('link', { name: 'API keys' }).count()).toBe(0)
})

test('a person gets another email address with a link and the password, and a sensitive change asks for it once', async () => {
  browser.expectProblem(/40[13]/)
  const { page } = await newOwner()
  await service.db.pool.query(`UPDATE sign_ins SET confirmed_at = NULL`)
  const address = `${randomUUID()}@acme.test`
  await follow(page, '/people')
  await button(page, 'Actions for Ada Lovelace').click()
  await page.getByRole('menuitem', { name: 'Change the email address' }).click()
  await field(page, 'New email').fill(address)
  await button(page, 'Make a link').click()
  const dialog = page.getByRole('dialog', { name: 'Confirm with your password' })
  await dialog.getByLabel('Password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Confirm' }).click()
  const link = page.getByRole('dialog', { name: 'Link for Ada Lovelace' })
  await link.getByText(address).waitFor()
  const token = /#([\w-]{43})/.exec((await link.textContent()) ?? '')?.[1]
  await link.getByRole('button', { name: 'Done' }).click()
  const visitor = await newVisitor()
  await visitor.goto(`/link#${token}`)
  await visitor.getByRole('heading', { name: 'Change your email address' }).waitFor()
  expect(await findAxeIssues(visitor)).toEqual([])
  await field(visitor, 'Password').fill('not the password')
  await button(visitor, 'Change the address and sign in').click()
  await visitor.getByText(/are not right/).waitFor()
  await field(visitor, 'Password').fill(PASSWORD)
  await button(visitor, 'Change the address and sign in').click()
  await visitor.getByRole('heading', { name: 'Overview' }).waitFor()
  await follow(page, '/account')
  await page.getByText(address).waitFor()
  await field(page, 'New password').fill('nine loud horses swim')
  await button(page, 'Change password').click()
  await status(page, 'Password changed. Every other sign-in has ended.')
  expect(await field(page, 'New password').inputValue()).toBe('')

  // Of a person who signs in with a provider, it asks for no password.
  await service.db.pool.query(`UPDATE sign_ins SET confirmed_at = NULL`)
  await service.db.pool.query(`UPDATE accounts SET password_hash = NULL WHERE email = $1`, [address])
  await show(page, '/account')
  await field(page, 'New password').fill('nine loud horses swim')
  await button(page, 'Change password').click()
  page.once('dialog', (leaving) => void leaving.accept())
  await page.getByRole('dialog', { name: 'Sign in again' }).getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(new URL(page.url()).searchParams.get('next')).toBe('/account')
})

test('two people who save the same thing see both versions, and unsaved changes are not left without a warning', async () => {
  browser.expectProblem(/409/)
  const { owner, page } = await open('/organization')
  const saveBoth = async (mine: string, theirs: string) => {
    await field(page, 'Name').fill(mine)
    const { version } = await owner.call('getOrganization')
    await owner.call('saveOrganization', { body: { name: theirs, version } })
    await page.keyboard.press('Control+s')
  }
  await saveBoth('Mine', 'Theirs')
  const conflict = page.getByRole('alert')
  await conflict.getByText('Another person, or you in another tab, saved or deleted this').waitFor()
  await conflict.getByText('Theirs', { exact: true }).waitFor()
  await conflict.getByText('Mine', { exact: true }).waitFor()
  await button(page, 'Keep mine').click()
  await status(page, 'Saved.')
  expect((await owner.call('getOrganization')).name).toBe('Mine')
  await saveBoth('Mine again', 'Theirs again')
  await button(page, 'Take the saved version').click()
  expect(await field(page, 'Name').inputValue()).toBe('Theirs again')
  await field(page, 'Name').fill('Unsaved')
  await page.getByRole('link', { name: 'People' }).click()
  await button(page, 'Stay here').click()
  // The button had the focus.
  await field(page, 'Name').and(page.locator(':focus')).waitFor()
  expect(await field(page, 'Name').inputValue()).toBe('Unsaved')
  await page.getByRole('link', { name: 'People' }).click()
  await button(page, 'Leave without saving').click()
  await page.getByRole('heading', { name: 'People', exact: true }).waitFor()
})

test('a form shows what another person saved before the response to its own save arrived', async () => {
  const { owner, page } = await open('/organization')
  await page.route(`**${APP_ROUTES.saveOrganization.path}`, async (route) => {
    if (route.request().method() === 'GET') return await route.fallback()
    // A request of the test has no header by which the application knows its own page.
    const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' }
    const response = await route.fetch({ headers })
    const { version } = await owner.call('getOrganization')
    await owner.call('saveOrganization', { body: { name: 'Theirs', version } })
    await page.locator('header').getByText('Theirs').waitFor()
    await route.fulfill({ response })
  })
  await field(page, 'Name').fill('Mine')
  await page.keyboard.press('Control+s')
  await status(page, 'Saved.')
  await expect(field(page, 'Name').inputValue()).resolves.toBe('Theirs')
})

test('a person who stays on a page because of what was typed also stays in its organization', async () => {
  const { page, email } = await newOwner()
  const { organizationId } = await service.signIn()
  await service.db.pool.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name, account_id, role)
     SELECT $1, $2, email, first_name, last_name, account_id, 'member' FROM users WHERE email = $3`,
    [randomUUID(), organizationId, email],
  )
  await show(page, '/workflows/new')
  await field(page, 'Name').fill('Count parcels')
  await field(page, 'Task').fill('Do it.')
  const changes: string[] = []
  page.on('request', (request) => changes.push(new URL(request.url()).pathname))
  await button(page, 'Organization: Acme').click()
  await page.getByRole('menuitem', { name: 'Acme' }).click()
  await button(page, 'Stay here').click()
  // It leaves the page.
  await button(page, 'Create workflow').click()
  await page.getByRole('heading', { name: 'Count parcels', level: 1 }).waitFor()
  await settle(page)
  expect(changes).not.toContain(APP_ROUTES.switchOrganization.path)
})

test('a person who signs out is asked about what was typed while it can still be saved', async () => {
  const { page } = await open('/workflows/new')
  const signOut = async () => {
    await button(page, 'Account: The owner').click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
  }
  await field(page, 'Name').fill('Count parcels')
  await field(page, 'Task').fill('Do it.')
  await signOut()
  await button(page, 'Stay here').click()
  await button(page, 'Create workflow').click()
  await page.getByRole('heading', { name: 'Count parcels', level: 1 }).waitFor()
  // Without a response the person is signed in as before, and the page says so.
  await page.route(`**${APP_ROUTES.signOut.path}`, (route) => route.abort(), { times: 1 })
  browser.expectProblem(/ERR_FAILED/)
  await signOut()
  await page.getByText('The server cannot be reached. Check your connection, then try again.').waitFor()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const ended = page.waitForResponse(`**${APP_ROUTES.signOut.path}`)
  await signOut()
  await ended
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  browser.expectProblem(/401/)
  await page.goto('/keys')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(page.url()).toBe(`${service.url}/sign-in?next=%2Fkeys`)
})

test('a person who signs out finds the way to sign in that is read only after the end of the sign-in', async () => {
  const { page } = await open('/')
  const { path } = APP_ROUTES.signOut
  const ended = page.waitForResponse(`**${path}`)
  await page.route(`**${APP_ROUTES.getSetup.path}`, async (route) => {
    await ended.then((response) => response.finished())
    await route.fulfill({ json: { needs_setup: false, has_oidc: true } })
  })
  await button(page, 'Account: The owner').click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('link', { name: 'Sign in with your organization’s provider' }).waitFor()
  // Nothing of the person is left.
  browser.expectProblem(/401/)
  await page.goBack()
  await page.waitForURL(`${service.url}/sign-in`)
  expect(await button(page, 'Account: The owner').count()).toBe(0)
})

test('the deletion of an organization leaves its page, also while a new name of it is typed', async () => {
  browser.expectProblem(/401/)
  const { page } = await newOwner()
  await follow(page, '/organization')
  await field(page, 'Name').fill('Apex')
  await button(page, 'Delete the organization').click()
  await page.getByLabel('Type “Acme” to confirm').fill('Acme')
  await button(page, 'Delete everything').click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
})

test('what changes before the stream of hints is open is shown once it is', async () => {
  const { owner, page, workflowId } = await openFilled()
  const other = await browser.reusePage(owner.context)
  const openStream = await hold(page, `**${APP_ROUTES.streamEvents.path}`)
  await show(page, `/workflows/${workflowId}`)
  await show(other, `/workflows/${workflowId}`)
  const params = { workflow_id: workflowId }
  const { description, version } = await owner.call('getWorkflow', { params })
  const body = { name: 'Renamed', description, scope: 'company_wide', version } as const
  await owner.call('saveWorkflow', { params, body })
  await other.getByRole('heading', { name: 'Renamed' }).waitFor()
  expect(await page.getByRole('heading', { name: 'Renamed' }).count()).toBe(0)
  openStream()
  await page.getByRole('heading', { name: 'Renamed' }).waitFor()
})

test('menus work with the keyboard, and the removal of a person and the end of their sign-ins say what happens first', async () => {
  const { owner, page } = await open()
  await service.signIn({ role: 'member', organizationId: owner.organizationId })
  const id = randomUUID()
  await owner.call('createUser', {
    body: { id, email: 'grace@acme.test', first_name: 'Grace', last_name: '', role: 'member' },
  })
  await show(page, '/people')
  const trigger = button(page, 'Actions for Grace')
  await trigger.press('Enter')
  const item = (name: string) => page.getByRole('menuitem', { name }).and(page.locator(':focus'))
  await item('Change name and role').waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  // It stays with its person.
  const size = page.viewportSize()!
  await page.setViewportSize({ ...size, height: 200 })
  const place = async () => (await page.getByRole('menu').boundingBox())!.y - (await trigger.boundingBox())!.y
  const before = await place()
  await page.evaluate(`new Promise((resolve) => {
    document.addEventListener('scroll', () => requestAnimationFrame(resolve), { once: true })
    scrollBy(0, 40)
  })`)
  expect(await place()).toBeCloseTo(before)
  await page.setViewportSize(size)
  await page.keyboard.press('Escape')
  await trigger.and(page.locator(':focus')).waitFor()
  await page.keyboard.press('ArrowDown')
  await item('Change name and role').waitFor()
  await page.keyboard.press('d')
  await item('Deactivate').press('Enter')
  await page.getByRole('dialog', { name: 'Deactivate Grace?' }).getByRole('button', { name: 'Deactivate' }).click()
  await status(page, 'Grace is deactivated.')
  expect(await findAxeIssues(page)).toEqual([])

  const choose = async (name: string) => {
    await page
      .getByRole('row', { name: /^The member .*Member/ })
      .getByRole('button')
      .click()
    await page.getByRole('menuitem', { name }).click()
    return page.getByRole('dialog')
  }
  const removal = await choose('Remove')
  await removal.getByText('The person is signed out at once.', { exact: true }).waitFor()
  await removal.getByRole('button', { name: 'Cancel' }).click()
  await (await choose('Sign out everywhere')).getByRole('button', { name: 'Sign out' }).click()
  await status(page, 'The member is signed out everywhere.')
  expect(await page.getByRole('dialog').count()).toBe(0)

  // Another admin removes a person, whose place on the first page of several another one takes.
  await service.db.pool.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name)
     SELECT gen_random_uuid(), $1, 'z' || number || '@acme.test', 'Person', number FROM generate_series(10, 39) AS number`,
    [owner.organizationId],
  )
  await show(page, '/people')
  await button(page, 'Older').waitFor()
  await owner.call('deleteUser', { params: { user_id: id } })
  await page.getByRole('row', { name: /^Grace/ }).waitFor({ state: 'detached' })
  expect(await page.getByRole('row').count()).toBe(26)
})

test('the keyboard lists its keys, of which single ones can be switched off, and a theme is chosen for every tab', async () => {
  const { page } = await open('/')
  await page.keyboard.press('?')
  const shortcuts = page.getByRole('dialog', { name: 'Shortcuts' })
  await shortcuts.getByText('j, k', { exact: true }).waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await page.keyboard.press('Escape')
  await shortcuts.waitFor({ state: 'detached' })
  await follow(page, '/account')
  const tab = await page.context().newPage()
  await show(tab, '/account')
  await page.getByRole('radio', { name: 'Dark' }).check()
  expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
  await tab.getByRole('radio', { name: 'Dark', checked: true }).waitFor()
  expect(await tab.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
  await tab.emulateMedia({ media: 'print' })
  expect(await tab.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('light')
  expect(await tab.locator('.skip-link').isVisible()).toBe(false)
  await tab.close()
  await page.getByRole('switch').uncheck()
  await page.keyboard.press('?')
  // On a keyboard for Cyrillic letters, too.
  const key = { key: 'л', code: 'KeyK', ctrlKey: true }
  await page.evaluate(`document.dispatchEvent(new KeyboardEvent('keydown', ${JSON.stringify(key)}))`)
  await page.getByRole('dialog', { name: 'Find' }).waitFor()
  expect(await page.getByRole('dialog').count()).toBe(1)
  // The Enter that ends a composition, as Safari reports it, chooses nothing.
  const find = page.getByRole('combobox', { name: /^Find/ })
  await find.fill('usage')
  const ending = { key: 'Enter', keyCode: 229, bubbles: true }
  await page.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', ${JSON.stringify(ending)}))`)
  await page.getByRole('option', { name: 'Usage' }).waitFor()
  await find.press('Enter')
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
})

test('a browser that blocks what pages store shows the page, and keeps a choice until it is left', async () => {
  const { context } = await service.signIn()
  const page = await browser.newPage(context)
  await page.addInitScript(`Object.defineProperty(window, 'localStorage', {
    get() { throw new DOMException('Access is denied for this document.', 'SecurityError') },
  })`)
  await show(page, '/account')
  await page.getByRole('radio', { name: 'Dark' }).check()
  expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
})

test('a page whose scripts do not start says after a while what it needs', async () => {
  browser.expectProblem(/ERR_FAILED/)
  const page = await browser.newPage({ baseURL: service.url })
  await page.route('**/*.js', async (route) => await route.abort())
  await page.goto('/sign-in')
  const text = page.getByText('Reload this page if nothing changes.')
  expect(await text.isVisible()).toBe(false)
  await page.evaluate('for (const each of document.getAnimations()) each.finish()')
  await text.waitFor()
  await page.setViewportSize({ width: 375, height: 800 })
  expect(await findScrolledSideways(page)).toEqual([])
})

test('a topic that only a service of a later release names does not keep the page from showing what changes', async () => {
  const { owner, page, workflowId } = await openFilled()
  const body = 'retry: 1\ndata: {"topics":["of a later release"]}\n\n'
  const notice = { contentType: 'text/event-stream', body }
  await page.route(`**${APP_ROUTES.streamEvents.path}`, (route) => route.fulfill(notice), { times: 1 })
  const received = page.waitForResponse((response) => response.url().endsWith(APP_ROUTES.streamEvents.path))
  await show(page, `/workflows/${workflowId}`)
  await received
  const params = { workflow_id: workflowId }
  const { description, version } = await owner.call('getWorkflow', { params })
  const values = { name: 'Renamed', description, scope: 'company_wide', version } as const
  await owner.call('saveWorkflow', { params, body: values })
  const heading = page.getByRole('heading', { name: 'Renamed' })
  await heading.waitFor()
  expect(await heading.count()).toBe(1)
})
