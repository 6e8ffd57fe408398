import { createHmac, randomUUID } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createSetupLink, newId } from '@workflow-service/database'
import { WEBHOOK_SOURCE_NAME_MAX_LENGTH } from '@workflow-service/contract/limits'
import { waitUntil } from '@workflow-service/testkit'
import type { Page } from '@workflow-service/testkit/use-browser'
import { findIssues } from './support/find-issues.ts'
import { loseResponse } from './support/lose-response.ts'
import { setUp } from './support/set-up.ts'
import { follow, show } from './support/show.ts'
import { codeIn, writeCode } from './support/code.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser, open, openFilled } = useConsole()

/** A text that has no place to break. */
const LONG = 'x'.repeat(200)

const press = async (page: Page, name: string) => await page.getByRole('button', { name, exact: true }).click()

describe('The signing secret of a source', () => {
  test('is shown once after the source is made, also if an earlier response was lost, with code that checks it', async () => {
    browser.expectProblem(/ERR_FAILED|409/)
    const name = `Order-intake-${LONG}`.slice(0, WEBHOOK_SOURCE_NAME_MAX_LENGTH)
    const { page } = await open('/sources/new')
    await page.getByText('npm run -s wf -- listen 3000/orders').waitFor()
    await page.getByText('More settings').click()
    expect(await findIssues(page)).toEqual([])
    await page.getByRole('textbox', { name: 'Name' }).fill(name)
    await page.getByLabel('URL', { exact: true }).fill(`${service.endpoint.url}/orders`)
    await press(page, 'New secret')
    const chosen = await page.getByRole('textbox', { name: 'Secret' }).inputValue()
    await loseResponse(page, '**/app/webhook-sources/*')
    await press(page, 'Verify and create')
    await page.getByText('The server cannot be reached.').waitFor()
    await page.getByLabel('When to send here').fill('For every order.')
    await press(page, 'Verify and create')
    await press(page, 'Take the saved version')
    await press(page, 'Verify and create')
    const dialog = page.getByRole('dialog', { name: `Signing secret of ${name}` })
    const secret = await dialog.getByRole('region', { name: 'signing secret' }).innerText()
    await page.getByRole('heading', { name, exact: true }).waitFor()
    expect(secret).toBe(chosen)
    expect(Buffer.from(secret, 'base64')).toHaveLength(32)
    const [verification] = service.endpoint.requests.slice(-1)
    expect(verification?.json).toMatchObject({ data: { signing_secret: secret } })
    expect(await findIssues(page)).toEqual([])

    const code = await dialog.getByRole('region', { name: 'code that checks the header' }).innerText()
    const isAuthentic = await load(code)
    expect(isAuthentic(String(verification?.headers['x-service-token']), secret)).toBe(true)
    expect(isAuthentic(tokenOf('another secret', 0), secret)).toBe(false)
    // As a server whose setting is empty would call it.
    expect(isAuthentic(tokenOf('', 0), '')).toBe(false)
    expect([-290, 0, 290].map((age) => isAuthentic(tokenOf(secret, age), secret))).toEqual([true, true, true])
    expect([-310, 310].map((age) => isAuthentic(tokenOf(secret, age), secret))).toEqual([false, false])
    expect([undefined, '', 'MS4w'].map((token) => isAuthentic(token, secret))).toEqual([false, false, false])

    await press(page, 'I stored it')
    await dialog.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByText('Created. Your endpoint accepted').waitFor()
    expect(await page.content()).not.toContain(secret)
  })

  test.each([401, 403])('is in sight before the source exists when the endpoint answers %d', async (status) => {
    browser.expectProblem(/422/)
    const { page } = await open('/sources/new')
    await page.getByRole('textbox', { name: 'Name' }).fill('Stock')
    await page.getByLabel('URL', { exact: true }).fill(`${service.endpoint.url}/stock`)
    const secret = page.getByRole('textbox', { name: 'Secret' })
    expect(await secret.isVisible()).toBe(false)
    service.endpoint.answerWith({ status })
    await press(page, 'Verify and create')
    await page
      .getByRole('alert')
      .getByText(/knows? the signing secret of this source/)
      .waitFor()
    service.endpoint.answerWith({ status: 200 })
    await secret.waitFor()
    expect(await secret.inputValue()).toHaveLength(44)
  })

  test('is shown again when another one was saved, and the form keeps it from then on', async () => {
    const { page } = await openFilled(({ sourceId }) => `/sources/${sourceId}`)
    await page.getByText('More settings: signed, sent at once').click()
    await page.getByLabel('Replace it').check()
    await press(page, 'New secret')
    const secret = await page.getByRole('textbox', { name: 'Secret' }).inputValue()
    await press(page, 'Verify and save')
    await page.getByRole('dialog').getByText(secret).waitFor()
    await press(page, 'I stored it')
    await page.getByRole('radio', { name: 'Keep the stored one', checked: true }).waitFor()
    expect(await page.content()).not.toContain(secret)
  })
})

/** A service token that is some seconds old (contract README, "Service token"). */
function tokenOf(secret: string, ageSeconds: number): string {
  const timestamp = String(Math.floor(Date.now() / 1_000) - ageSeconds)
  return btoa(`${timestamp}.${createHmac('sha256', secret).update(timestamp).digest('hex')}`)
}

/** Imports `isAuthentic` of code that a page shows. */
async function load(code: string): Promise<(token: string | undefined, secret: string) => boolean> {
  const module: unknown = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  return (module as { isAuthentic: (token: string | undefined, secret: string) => boolean }).isAuthentic
}

test('the approval of a source is changed while its endpoint is down, and everything else is not; beside a save of another person, the version that is chosen is kept', async () => {
  const { owner, page, sourceId } = await openFilled((filled) => `/sources/${filled.sourceId}`)
  const params = { source_id: sourceId }
  service.endpoint.answerWith({ status: 500 })
  const requests = service.endpoint.requests.length
  await page
    .getByText(/^Name, description, URL, example and secret are saved when the endpoint confirms them/)
    .waitFor()
  await page.getByText('More settings: signed, sent at once').click()
  await page.getByLabel('Ask a person every time').check()
  await page.getByText('Approval is saved without a request to the endpoint, so also while it is down.').waitFor()
  await press(page, 'Save')
  await page.getByText('Saved, without a request to the endpoint.').first().waitFor()
  expect((await owner.call('getWebhookSource', { params })).approval).toBe('always')
  expect(service.endpoint.requests).toHaveLength(requests)

  browser.expectProblem(/422/)
  await page.getByLabel('When to send here').fill('Only for tests.')
  await page.getByLabel('Send at once').check()
  await press(page, 'Verify and save')
  await page.getByText(/Your endpoint answered 500.*Nothing was saved. The earlier version stays in use/).waitFor()
  const kept = await owner.call('getWebhookSource', { params })
  expect([kept.approval, kept.description]).toEqual(['always', 'Takes every new order.'])
  service.endpoint.answerWith({ status: 200 })

  // The page does not learn of the save of another person before its own.
  browser.expectProblem(/409/)
  await press(page, 'Revert')
  const seen = await owner.call('getWebhookSource', { params })
  await page.route(`**/app/webhook-sources/${sourceId}`, async (route) =>
    route.request().method() === 'GET' ? await route.fulfill({ json: seen }) : await route.continue(),
  )
  await page.getByLabel('Send at once').check()
  const { name, endpoint_url, example_request_body, version } = seen
  const theirs = { name, endpoint_url, example_request_body, version, description: 'Theirs.' }
  await owner.call('saveWebhookSource', { params, body: theirs })
  await page.locator('form').getByRole('button', { name: /save$/i }).click()
  await press(page, 'Keep mine')
  await page.getByText('Verified and saved.').first().waitFor()
  const chosen = await owner.call('getWebhookSource', { params })
  expect([chosen.approval, chosen.description]).toEqual(['none', 'Takes every new order.'])
})

test('a trigger of another system starts nothing, shows what is kept as such, and keeps it when it is edited', async () => {
  const { owner, page, workflowId } = await openFilled()
  const params = { workflow_id: workflowId, trigger_id: randomUUID() }
  const kept = {
    trigger_source: { slug: 'street', name: 'Street' },
    events: [{ slug: 'visit_booked', name: LONG }],
    filters: { [LONG]: 'EU' },
    subagent_sources: [{ id: null, name: 'Researcher', type: 'platform_internal' }],
  }
  // With no other one, the workflow cannot start, and the panel adds one that can.
  const [first] = (await owner.call('getWorkflow', { params })).triggers
  await owner.saveTrigger(workflowId, { ...kept, version: first!.version }, first!.id)
  await show(page, `/workflows/${workflowId}/try`)
  const readiness = page.getByRole('region', { name: 'Ready to start?' })
  await readiness.getByText('People and programs cannot start it yet').waitFor()
  await readiness.getByRole('button', { name: 'Allow starts' }).click()
  await readiness.getByText('Yes.', { exact: true }).waitFor()
  const { triggers: both } = await owner.call('getWorkflow', { params })
  expect(both.map(({ trigger_source: source }) => source.slug)).toEqual(['street', 'api'])

  await owner.saveTrigger(workflowId, { ...kept, name: 'Visits' }, params.trigger_id)
  await follow(page, `/workflows/${workflowId}/triggers`)
  const sentence = 'Kept for other systems; this service does not evaluate it:'
  const card = page.getByRole('article', { name: 'Visits' })
  await card.getByText(sentence).waitFor()
  expect(await card.getByRole('term').allTextContents()).toEqual([
    'Started by',
    'Events',
    'Filters',
    'Subagent sources',
  ])
  await press(page, 'Edit Visits')
  const dialog = page.getByRole('dialog')
  await dialog.getByText(sentence).waitFor()
  expect(await dialog.getByRole('textbox').count()).toBe(2)
  expect(await findIssues(page)).toEqual([])
  // A manifest is applied meanwhile.
  browser.expectProblem(/409/)
  const filters = { region: 'US' }
  const values = { ...kept, name: 'Visits', filters, version: (await trigger())!.version }
  await owner.saveTrigger(workflowId, values, params.trigger_id)
  await dialog.getByLabel('Input message').fill('A visit:')
  await press(page, 'Save')
  await press(page, 'Keep mine')
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('A visit:').waitFor()
  await press(page, 'Pause Visits')
  await card.getByText('Paused', { exact: true }).waitFor()
  expect(await trigger()).toMatchObject({ ...kept, filters, input_message: 'A visit:', is_active: false })

  // A new one is fired by what this service evaluates.
  await press(page, 'Add trigger')
  expect(await dialog.getByText(sentence).count()).toBe(0)
  await dialog.getByLabel('Name').fill('Own')
  await dialog.getByRole('button', { name: 'Add trigger' }).click()
  await page.getByRole('article', { name: 'Own' }).getByText('People, programs and the schedule').waitFor()

  async function trigger() {
    const { triggers } = await owner.call('getWorkflow', { params })
    return triggers.find(({ id }) => id === params.trigger_id)
  }
})

test('a trigger that was deleted meanwhile is kept as the kind that it was', async () => {
  browser.expectProblem(/409/)
  const { owner, page, workflowId } = await openFilled(({ workflowId: id }) => `/workflows/${id}/triggers`)
  const id = randomUUID()
  const kept = { trigger_source: { slug: 'email', name: 'Email' }, filters: { to: 'orders@acme.test' } }
  await owner.saveTrigger(workflowId, { name: 'Mail', ...kept }, id)
  await press(page, 'Edit Mail')
  await page.getByLabel('Input message').fill('A mail:')
  const params = { workflow_id: workflowId }
  const find = async () => (await owner.call('getWorkflow', { params })).triggers.find((each) => each.id === id)
  const version = (await find())?.version ?? ''
  await owner.call('deleteTrigger', { params: { ...params, trigger_id: id }, query: { version } })
  await press(page, 'Save')
  await press(page, 'Keep mine')
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  expect(await find()).toMatchObject({ ...kept, input_message: 'A mail:' })
})

test('a try says which sources get the payload at once, and which only after an approval', async () => {
  const { owner, page, workflowId, sourceId } = await openFilled()
  for (const [name, approval] of [
    ['Billing', 'always'],
    ['Stock', 'first'],
  ] as const) {
    const example = { order_id: 'X' }
    const url = `${service.endpoint.url}/${name}`
    await owner.saveSource({ name, endpoint_url: url, example_request_body: example, approval })
  }
  const params = { workflow_id: workflowId }
  const { version, name, scope } = await owner.call('getWorkflow', { params })
  const description = 'Send it to Order intake, Billing and Stock.'
  await owner.call('saveWorkflow', { params, body: { name, scope: scope as 'company_wide', description, version } })
  await show(page, `/workflows/${workflowId}/try`)
  await page
    .getByText(
      'This really sends to Order intake. A person approves first what goes to Billing. A person approves what goes to Stock, until the first one was accepted.',
    )
    .waitFor()
  expect(await findIssues(page)).toEqual([])
  const billing = (await owner.call('listWebhookSources')).data.find((each) => each.name === 'Billing')!
  for (const id of [sourceId, billing.id]) await owner.call('pauseWebhookSource', { params: { source_id: id } })
  await show(page, `/workflows/${workflowId}/try`)
  await page
    .getByText(
      'A person approves what goes to Stock, until the first one was accepted. What goes to Billing and Order intake waits until they are resumed.',
    )
    .waitFor()
  expect(await page.getByText('This really sends').count()).toBe(0)
})

test('a try whose result cannot be read says why, and that another one has replaced it only if that is so; kept as a case, it starts nothing', async () => {
  browser.expectProblem(/503|404/)
  const { owner, page } = await openFilled(({ workflowId }) => `/workflows/${workflowId}/try`)
  const replaced = page.getByText('A later trial of this workflow has replaced this one, or')
  const error = { code: 'database_unavailable', message: 'The database does not answer. Try again.' }
  let isDown = true
  await page.route('**/trials/*', async (route) => {
    if (isDown && route.request().method() === 'GET') await route.fulfill({ status: 503, json: { error } })
    else await route.fallback()
  })
  await press(page, 'Try without sending')
  await page.getByText(error.message).waitFor()
  expect(await replaced.count()).toBe(0)
  isDown = false
  await page.getByText('The run would send 1 payload.').waitFor()
  // The key that starts the workflow is one of the page, not of a dialog above it.
  const { data: runs } = await owner.call('listRuns')
  await press(page, 'Keep as case')
  await page.keyboard.press('Control+Enter')
  await press(page, 'Keep')
  await page.getByText('Kept.', { exact: false }).first().waitFor()
  expect((await owner.call('listRuns')).data).toHaveLength(runs.length)
  // Another person tries the workflow while the run is planned.
  let reads = 0
  await page.route('**/trials/*', async (route) => {
    if (route.request().method() !== 'GET') return await route.fallback()
    reads += 1
    const gone = { error: { code: 'not_found', message: 'There is no such trial.' } }
    if (reads > 1) return await route.fulfill({ status: 404, json: gone })
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...((await response.json()) as object), finished_at: null } })
  })
  await press(page, 'Try without sending')
  await replaced.waitFor()
})

test('a key of a person who was removed is not said to be one of the operator', async () => {
  const { owner, page } = await open()
  const other = await service.signIn({ role: 'admin', organizationId: owner.organizationId })
  await other.call('createApiKey', { body: { id: newId(), name: 'CRM', scopes: ['read'], expires_at: null } })
  const { user_id: userId } = await other.call('getMe')
  await owner.call('deleteUser', { params: { user_id: userId } })
  await show(page, '/keys')
  const row = page.getByRole('row', { name: /^CRM/ })
  await row.waitFor()
  expect(await row.getByRole('cell').nth(2).textContent()).toBe('Operator or removed person')
})

test('a try counts only what would be sent, and says so if it does not know all of it', async () => {
  const { page } = await openFilled(({ workflowId }) => `/workflows/${workflowId}/try`)
  const large = { omitted_bytes: 3_000_000 }
  let extra: object[] = []
  await page.route('**/trials/*', async (route) => {
    if (route.request().method() !== 'GET') return await route.fallback()
    const response = await route.fetch()
    const trial = (await response.json()) as { steps?: { kind: string; data: { delivery?: object } }[] }
    if (!trial.steps) return await route.fulfill({ response })
    // What a model corrects: the first payload does not follow the example.
    const invalid = trial.steps.flatMap(({ kind, data }) =>
      data.delivery
        ? [{ kind, data: { ...data, call_id: 'x', delivery: { ...data.delivery, outcome: 'invalid' } } }]
        : [],
    )
    await route.fulfill({ response, json: { ...trial, steps: [...invalid, ...extra, ...trial.steps] } })
  })
  await press(page, 'Try without sending')
  await page.getByText('The run would send 1 payload. Nothing was sent.').waitFor()
  expect(await page.getByRole('heading', { name: 'Not to Order intake' }).count()).toBe(1)
  extra = ['model_answer', 'tool_call'].map((kind) => ({ kind, data: large }))
  await press(page, 'Try without sending')
  await page
    .getByText('The run would send at least 1 payload. Nothing was sent. Some of its steps are too large to be shown.')
    .waitFor()
})

test('a run whose payload is incomplete names what it lacks, leads to the rule that it needs, and starts again with it', async () => {
  browser.expectProblem(/409/)
  const { owner, page, workflowId } = await openFilled()
  const failWith = async (context: string) => {
    const { runId } = await owner.start(workflowId, context)
    const params = { run_id: runId }
    await waitUntil(async () => (await owner.call('getRun', { params })).status === 'failed')
    await follow(page, `/runs/${runId}`)
  }
  await failWith('order_id: A-1\ncustomer: Ada\nTotl: 12.50')
  await page.getByText('payload_incomplete', { exact: true }).waitFor()
  expect(await page.getByRole('main').textContent()).toContain('No value for: total')
  expect(await findIssues(page)).toEqual([])
  await page.getByRole('link', { name: 'Write the rule' }).click()
  const drawer = page.getByRole('dialog')
  const text = drawer.getByRole('textbox', { name: 'Text' })
  await text.waitFor()
  expect(await drawer.getByLabel('Name').inputValue()).toBe('rules.yaml')
  expect(await codeIn(text)).toMatch(/- to: "?Order intake"?\n    payload:\n      total: number\(fields.Totl\)/)
  await press(page, 'Create file')
  await press(page, 'Start again')
  await page.getByRole('list', { name: 'Timeline' }).getByRole('heading', { name: 'Succeeded' }).waitFor()
  expect(service.endpoint.requests.at(-1)?.json).toEqual({ order_id: 'A-1', customer: 'Ada', total: 12.5 })

  // The rules that there are stay, and what the next run lacks comes after them as a comment.
  await failWith('order_id: A-2\nCustomr: Ada\nTotl: 3')
  await page.getByRole('link', { name: 'Write the rule' }).click()
  await page.getByRole('dialog', { name: 'rules.yaml' }).waitFor()
  const both = await codeIn(text)
  expect(both).toMatch(/\n      total: number\(fields.Totl\)\n\n# /)
  expect(both).toContain('\n#       customer: text(fields.Customr)')
  // Rules of another person that were saved meanwhile are shown as they are.
  const params = { workflow_id: workflowId }
  const { id: fileId = '', version = null } = (await owner.call('getWorkflow', { params })).files.find(isRules) ?? {}
  const theirs = { name: 'rules.yaml', path: [], content: `${both}# Of Grace.\n`, version }
  await owner.call('saveFile', { params: { ...params, file_id: fileId }, body: theirs })
  const filledIn = both.replace('\n#       customer:', '\n      customer:')
  await writeCode(text, filledIn)
  await press(page, 'Save')
  await drawer.getByRole('figure', { name: 'Text' }).getByText('# Of Grace.').waitFor()
  await press(page, 'Take the saved version')
  expect(await codeIn(text)).toBe(theirs.content)
  await writeCode(text, filledIn)
  await press(page, 'Save')
  await press(page, 'Start again')
  await page.getByRole('list', { name: 'Timeline' }).getByRole('heading', { name: 'Succeeded' }).waitFor()
})

const isRules = ({ name }: { name: string }) => name === 'rules.yaml'

test('a browser that keeps no cookie over http says so before a link is used, which works afterwards elsewhere', async () => {
  const token = await createSetupLink(service.db, null)
  const page = await browser.reusePage({ baseURL: service.url })
  let uses = 0
  await page.route('**/app/**', async (route) => {
    if (route.request().method() === 'POST' && route.request().url().endsWith('/app/setup')) uses += 1
    // A request of the test has no header by which the application knows its own page.
    const sent = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' }
    const response = await route.fetch({ headers: sent })
    // What Safari does with a `Secure` cookie over http.
    const { 'set-cookie': _, ...headers } = response.headers()
    await page.context().clearCookies()
    await route.fulfill({ response, headers })
  })
  const said = page
    .getByRole('alert')
    .filter({ hasText: 'This browser does not keep the sign-in over http; use Chrome or Firefox, or https.' })
  await page.goto(`/setup#${token}`)
  await page.getByRole('heading', { name: 'Set up' }).waitFor()
  await said.waitFor()
  expect(await page.getByRole('textbox').count()).toBe(0)
  expect(await findIssues(page)).toEqual([])
  await page.goto('/sign-in')
  await said.waitFor()
  expect(uses).toBe(0)

  // Another browser.
  const other = await browser.reusePage({ baseURL: service.url })
  await setUp(service.db, other, { token })
})

test('a new key says what its scopes allow, and that it needs one', async () => {
  const { page } = await open('/keys')
  await press(page, 'New key')
  const scopes = page.getByRole('dialog').getByRole('group')
  const read = page.getByLabel('Read: the organization and its workflows')
  const start = page.getByLabel('Start: start workflows', { exact: true })
  await read.uncheck()
  await start.uncheck()
  await page.getByLabel('Name').fill('Shop')
  await press(page, 'Create key')
  await page.locator('[aria-invalid]:focus').waitFor()
  const text = await scopes.getAttribute('aria-describedby')
  expect(await page.locator(`[id="${text}"]`).textContent()).not.toBe('')
  expect(await findIssues(page)).toEqual([])
})

test('a new key whose response was lost is not made again, and the page says that it cannot be shown any more', async () => {
  browser.expectProblem(/ERR_FAILED/)
  const { owner, page } = await open('/keys')
  await press(page, 'New key')
  await page.getByLabel('Name').fill('Shop')
  await loseResponse(page, '**/app/api-keys')
  await press(page, 'Create key')
  await page.getByText('The server cannot be reached.').waitFor()
  await press(page, 'Create key')
  await page.getByText('The key was already made by an earlier request').waitFor()
  expect((await owner.call('listApiKeys')).data).toHaveLength(1)
})

test('each person chooses the notices that they get by email', async () => {
  const { owner, page } = await open('/account')
  const member = await service.signIn({ role: 'member', organizationId: owner.organizationId })
  await member.call('saveMyNotices', { body: { kinds: ['approvals'] } })
  const notices = page.getByRole('group', { name: 'Send me' })
  await notices.getByLabel('Failed runs and deliveries').check()
  await notices.getByLabel('API keys that expire').check()
  await press(page, 'Save notices')
  await page.getByText('Saved.', { exact: true }).first().waitFor()
  await show(page, '/account')
  await notices.waitFor()
  expect(await notices.getByRole('checkbox', { checked: true }).count()).toBe(2)
  expect((await owner.call('getMyNotices')).kinds).toEqual(['failures', 'keys'])
  expect((await member.call('getMyNotices')).kinds).toEqual(['approvals'])
  await press(page, 'Send a test')
  await page.getByText(/^The test notice was not sent/).waitFor()
  // Members get no notices of keys.
  const others = await browser.reusePage(member.context)
  await show(others, '/account')
  const ofMember = others.getByRole('group', { name: 'Send me' })
  await ofMember.waitFor()
  expect(await ofMember.getByRole('checkbox').count()).toBe(3)
})

test('the webhook of notices gets the events that are chosen with it, and is removed', async () => {
  const { page } = await open('/organization')
  await press(page, 'Set a webhook')
  const dialog = page.getByRole('dialog', { name: 'Webhook for notices' })
  await dialog.getByLabel('URL').fill(`${service.endpoint.url}/notices`)
  await dialog.getByLabel('A run failed').check()
  await dialog.getByLabel('A payload waits for approval').check()
  expect(await findIssues(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Save' }).click()
  await press(page, 'Change the webhook')
  const isChosen = async (label: string) => await dialog.getByLabel(label).isChecked()
  expect([await isChosen('A run failed'), await isChosen('A run was cancelled')]).toEqual([true, false])
  await dialog.getByLabel('A run failed').uncheck()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const saved = await service.db.pool.query('SELECT events FROM notice_webhooks')
  expect(saved.rows).toEqual([{ events: ['approval.waiting'] }])
  service.endpoint.answerWith({ status: 204 })
  await press(page, 'Send a test')
  await page.getByText('The test notice was sent.').first().waitFor()
  expect(service.endpoint.requests.at(-1)?.json).toMatchObject({ type: 'notice.test', text: expect.any(String) })
  await press(page, 'Remove')
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('The webhook is removed.').first().waitFor()
  await page.getByRole('button', { name: 'Set a webhook' }).waitFor()
})
