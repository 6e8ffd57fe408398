import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { type AppResponseBody, RESEND_IDS_MAX } from '@workflow-service/contract'
import { AUDIT_ACTIONS, newId, recordRunPrompt } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { findAxeIssues, type Page } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { follow, show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const { service, browser, open, openFilled } = useConsole()

test('the overview leads through the first steps, then opens what needs attention', async () => {
  const { owner, page } = await open('/')
  const steps = page.getByRole('listitem').filter({ hasText: 'To do' })
  await steps.first().waitFor()
  expect(await steps.count()).toBe(3)
  const demo = await readFile(new URL('../../../infra/local-stack/demo.yaml', import.meta.url), 'utf8')
  const [, sourceId = ''] = /webhook_sources:\n {2}- id: (\S+)/.exec(demo) ?? []
  const [, id = ''] = /workflows:\n {2}- id: (\S+)/.exec(demo) ?? []
  await owner.saveSource({ name: 'Intake of the demo', endpoint_url: service.endpoint.url }, sourceId)
  const body = { id, name: 'Demo', description: 'Send it to "Intake of the demo".', scope: 'company_wide' as const }
  await owner.call('createWorkflow', { body })
  await owner.call('setWorkflowActive', { params: { workflow_id: id }, body: { is_active: true } })
  // What the demo has made is no step done; it needs nothing, so it is the first one.
  await page.getByText('The demo has one. Make your own for your endpoint.').waitFor()
  await steps.first().getByRole('link', { name: 'Try the demo' }).waitFor()
  expect(await steps.count()).toBe(3)
  // A member is not sent to pages of admins.
  const member = await service.signIn({ role: 'member', organizationId: owner.organizationId })
  const ofMember = await browser.reusePage(member.context)
  await show(ofMember, '/')
  await ofMember.getByRole('heading', { name: 'First steps' }).waitFor()
  expect(await ofMember.getByText('An admin of your organization does this.').count()).toBe(1)
  await fill(service, owner)
  // The page finds out by itself.
  await page.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Order intake answered 422' }).click()
  await page.getByRole('heading', { name: 'Delivery to Order intake' }).waitFor()
})

test('each number of the last 24 hours is that of the list which it opens, also with several sources', async () => {
  const { owner, page, workflowId, runId } = await openFilled()
  await owner.saveSource({ name: 'Billing', endpoint_url: `${service.endpoint.url}/bills` })
  service.endpoint.answerWith({ status: 500 })
  await owner.start(workflowId, 'order_id: A-1\ncustomer: Ada\ntotal: 1')
  // What is under way is nothing that a person has to find out.
  await service.db.pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body)
     SELECT gen_random_uuid(), organization_id, id, 'payload', 'in_flight', '{}'
     FROM webhook_sources WHERE organization_id = $1 LIMIT 1`,
    [owner.organizationId],
  )
  await show(page, '/')
  await page.getByRole('link', { name: '2 Runs failed 2 deliveries not accepted', exact: true }).waitFor()
  const tiles = page.getByRole('link', { name: /^\d+ Runs/ })
  const names = await tiles.allTextContents()
  expect(names).toHaveLength(2)
  for (const name of names) {
    await tiles.filter({ hasText: name }).click()
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await page.getByRole('row').nth(1).waitFor()
    expect([name, (await page.getByRole('row').count()) - 1]).toEqual([name, Number.parseInt(name, 10)])
    await page.goBack()
    await tiles.first().waitFor()
  }
  // As many as are counted have a column of their own.
  await service.db.pool.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, error,
       created_at, finished_at)
     SELECT gen_random_uuid(), organization_id, workflow_id, session_id, number + n, origin, context, request_id, 'failed',
       'agent_failed: It failed.', created_at - interval '2 days', finished_at
     FROM starts, generate_series(1, 1000) AS n WHERE id = $1`,
    [runId],
  )
  await service.db.pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at, finished_at)
     SELECT gen_random_uuid(), organization_id, source_id, kind, outcome, status, request_body,
       created_at - interval '8 days', finished_at
     FROM deliveries WHERE outcome = 'rejected'`,
  )
  await show(page, '/')
  // Those of the last 7 days that need attention, as it says.
  await page.getByRole('button', { name: 'Send again: Order intake answered 500' }).click()
  await page.getByRole('dialog', { name: 'Send 1 payload again' }).getByRole('button', { name: 'Cancel' }).click()
  const group = page.getByRole('listitem').filter({ hasText: '1,000+ ×' })
  const href = await group.getByRole('link').getAttribute('href')
  expect(href).toContain('&needs_attention=agent_failed&last=30d')
  const [count, link] = [group.getByText('1,000+ ×'), group.getByRole('link')]
  const [left, right] = await Promise.all([count.boundingBox(), link.boundingBox()])
  expect(right!.x).toBeGreaterThan(left!.x + left!.width)
  await service.db.pool.query(
    `UPDATE starts SET error = 'It failed.' WHERE id IN (SELECT id FROM starts WHERE error ~ '^agent' LIMIT 3)`,
  )
  await page.reload()
  await page
    .getByRole('listitem')
    .filter({ hasText: /^3\+ ×/ })
    .getByRole('link')
    .click()
  await page.getByRole('button', { name: 'Remove the filter Needs attention: no code' }).waitFor()
  await page.getByRole('row').nth(3).waitFor()
  expect(await page.getByRole('row').count()).toBe(1 + 3)
})

test('a period until now goes on while its page is open', async () => {
  const page = await browser.newPage((await service.signIn()).context)
  await page.clock.install()
  const begins: (string | null)[] = []
  page.on('request', (request) => begins.push(new URL(request.url()).searchParams.get('since')))
  await show(page, '/runs?last=1h')
  const before = new Set(begins)
  expect(before.size).toBe(2)
  await page.clock.fastForward('31:00')
  await waitUntil(async () => begins.some((each) => !before.has(each)))
})

test('the audit log has a filter for every kind of entry, and names the thing whose entries it shows', async () => {
  const { page } = await openFilled(({ sourceId }) => `/audit?target_id=${sourceId}`)
  await page.getByRole('button', { name: 'Remove the filter On what: Order intake' }).waitFor()
  await page.getByText('for as long as your operator keeps them').waitFor()
  const options = page.getByRole('combobox', { name: 'What' }).locator('option')
  const kinds = await options.evaluateAll((all) => all.map((each) => each.getAttribute('value') ?? ''))
  expect(AUDIT_ACTIONS.filter((action) => !kinds.some((kind) => kind && action.startsWith(kind)))).toEqual([])
})

test('an old entry of the audit log is shown again after a reload, and leads to all of its person, who is one of many', async () => {
  const { owner, page } = await openFilled()
  const { organizationId } = owner
  await service.db.pool.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name)
     SELECT gen_random_uuid(), $1, n || '@aaa.test', '', '' FROM generate_series(1, 120) AS n`,
    [organizationId],
  )
  // Whose address begins with "admin-".
  await (await service.signIn({ role: 'admin', organizationId })).call('saveMe', { body: { name: 'Zoe' } })
  const { data } = await owner.call('listAuditEvents', { query: { limit: 100 } })
  const saved = data.find(({ action }) => action === 'account.saved')!
  await service.db.pool.query(
    `INSERT INTO audit_events (id, organization_id, actor_kind, actor_name, action)
     SELECT gen_random_uuid(), $1, 'operator', 'operator', 'budget.nearly_spent' FROM generate_series(1, 100)`,
    [organizationId],
  )
  await show(page, `/audit?event=${saved.id}`)
  await page.getByRole('dialog').getByRole('link', { name: 'Everything by this person' }).click()
  await page.getByRole('button', { name: 'Remove the filter Who: The admin' }).click()
  // The fields are new then, and the first one gets the focus.
  await page.getByRole('combobox', { name: 'What' }).and(page.locator(':focus')).waitFor()
  // Not all of them are read.
  await page.route('**/app/users?*cursor*', (route) => route.abort())
  await page.getByRole('combobox', { name: 'Who' }).fill('admin-')
  await page.getByRole('option', { name: 'admin-' }).click()
  await page.getByRole('row', { name: /^Account saved/ }).waitFor()
  expect(page.url()).toContain(saved.actor.id)
  // One who has done nothing has a name, too.
  await page.getByRole('combobox', { name: 'Who' }).fill('17@aaa')
  await page.getByRole('option', { name: '17@aaa.test', exact: true }).click()
  await page.getByRole('button', { name: 'Remove the filter Who: 17@aaa.test' }).waitFor()
})

test('a member sees what a webhook source sends, and what only admins see is not tried again', async () => {
  const { owner, page: ownPage, sourceId } = await openFilled()
  const { organizationId } = owner
  const page = await browser.reusePage((await service.signIn({ role: 'member', organizationId })).context)
  await show(page, `/sources/${sourceId}`)
  await page.getByRole('heading', { name: 'Example body' }).waitFor()
  expect(await page.getByRole('region', { name: 'example body' }).textContent()).toContain('Jane Doe')
  await page
    .getByRole('table', { name: 'Last deliveries' })
    .getByRole('row', { name: /Accepted 200/ })
    .waitFor()
  await page.getByRole('link', { name: 'Forward orders' }).waitFor()
  await follow(page, '/keys')
  await page.getByText('Your role does not allow this.').waitFor()
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  await show(ownPage, `/sources/${sourceId}`)
  await ownPage.getByRole('img', { name: /^deliveries of the last 24 hours: 1 accepted, 1 not accepted/ }).waitFor()
  await ownPage.getByText('50 % of deliveries were not accepted in the last 24 hours.').waitFor()
  // After 50 failures in 10 minutes it offers a pause.
  await service.db.pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at, finished_at)
     SELECT gen_random_uuid(), $1, $2, 'payload', 'rejected', 500, '{}', now() + n * interval '15 seconds', now()
     FROM generate_series(1, 50) AS n`,
    [organizationId, sourceId],
  )
  await show(ownPage, `/sources/${sourceId}`)
  await ownPage.getByRole('button', { name: 'Pause it' }).click()
  await ownPage.getByText('One that has waited for 3 days fails.').waitFor()
  await ownPage.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
  await ownPage.getByText(/^Paused by /).waitFor()
  // It says what the payloads wait for then.
  const suspend = 'UPDATE organizations SET is_suspended = $2 WHERE id = $1'
  await service.db.pool.query(suspend, [organizationId, true])
  await show(ownPage, `/sources/${sourceId}`)
  await ownPage.getByRole('button', { name: 'Resume' }).click()
  await ownPage
    .getByText('Resumed. What waited is sent once the organization is not suspended any more.')
    .first()
    .waitFor()
  await service.db.pool.query(suspend, [organizationId, false])
  await ownPage.getByRole('button', { name: 'Pause it' }).waitFor()
  // A person says that what failed is done.
  await follow(ownPage, '/')
  await ownPage.getByRole('button', { name: 'Mark as done: Order intake answered 500' }).click()
  await ownPage.getByRole('button', { name: 'Mark as done: Order intake answered 500' }).waitFor({ state: 'detached' })
})

test('a session is opened, started in, shows what its starts wait for, and is closed', async () => {
  const { owner, page, workflowId } = await openFilled('/sessions')
  await page.getByRole('button', { name: 'New session' }).click()
  await page.getByRole('heading', { name: 'Nothing was started in it' }).waitFor()
  const sessionPath = new URL(page.url()).pathname
  const sessionId = sessionPath.split('/').at(-1) ?? ''
  await page.getByRole('combobox', { name: 'Start in this session' }).fill('forward')
  const endpointAnswer = Promise.withResolvers<object>()
  service.endpoint.answerWith(() => endpointAnswer.promise)
  await page.getByRole('option', { name: 'Forward orders' }).click()
  await page.getByRole('textbox', { name: 'Text' }).fill('order_id: A-1\ncustomer: Grace\ntotal: 1')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('heading', { name: 'Run of Forward orders' }).waitFor()
  for (let start = 2; start <= 3; start += 1) {
    await owner.start(workflowId, 'order_id: A-2', sessionId)
  }
  await follow(page, sessionPath)
  await page.getByRole('row', { name: /^1\. Forward orders.*Running/ }).waitFor()
  await page.getByRole('row', { name: /^3\. Forward orders.*Queued.*Start 2$/ }).waitFor()
  await follow(page, '/')
  await page.getByRole('link', { name: '2 Runs queued' }).click()
  await page.getByRole('cell', { name: 'Queued' }).nth(1).waitFor()
  expect(await page.getByRole('cell', { name: 'Running' }).count()).toBe(0)
  await follow(page, sessionPath)
  const [, second] = (await owner.call('getSession', { params: { session_id: sessionId } })).runs
  await owner.call('cancelRun', { params: { run_id: second?.id ?? '' } })
  await page.getByRole('row', { name: /^3\. Forward orders.*Queued.*Start 1$/ }).waitFor()
  await page.getByRole('button', { name: 'Stop queued runs' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop queued runs' }).click()
  await page.getByRole('cell', { name: 'Cancelled' }).nth(1).waitFor()
  await page.getByRole('button', { name: 'Stop queued runs' }).waitFor({ state: 'detached' })
  await page.getByText('3 starts, 1 of them not ended').waitFor()
  await page.getByRole('row', { name: /^1\. Forward orders.*Running/ }).click()
  await page.getByRole('button', { name: 'Stop run' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop run' }).click()
  await page.getByText(/^Cancelled by /).waitFor()
  await page.getByRole('button', { name: 'Stop run' }).waitFor({ state: 'detached' })
  await follow(page, sessionPath)
  await page.getByRole('button', { name: 'Close session' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Close session' }).click()
  await page.getByText('Closed', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Close session' }).waitFor({ state: 'detached' })
  endpointAnswer.resolve({})
})

test('the usage has a table under every chart, by workflow, webhook source and key, and downloads as CSV', async () => {
  const { page } = await openFilled('/usage')
  await page.getByText('Table', { exact: true }).first().click()
  expect(await page.getByRole('table', { name: 'Starts by day' }).getByRole('row').count()).toBe(1 + 7)
  // Nothing to worry about.
  expect(await page.getByText('0 unknown', { exact: true }).getAttribute('class')).toBe('badge quiet')
  await follow(page, '/usage?days=chosen&since=2026-01-01T00:00:00Z')
  await page.getByText('at most 92 days is shown at once').waitFor()
  await follow(page, '/usage?days=1')
  const chart = page.getByRole('img', { name: 'Starts by hour: 1 succeeded, 1 failed, 0 other' })
  expect((await chart.boundingBox())?.height).toBeLessThan(200)
  await page.getByText('Table', { exact: true }).first().click()
  expect(await page.getByRole('table', { name: 'Starts by hour' }).getByRole('row').count()).toBe(1 + 24)
  await page.getByRole('row', { name: /^Forward orders 1 1 0 [\d.]+ m?s/ }).waitFor()
  await page.evaluate(`document.querySelectorAll('.groups td.number').forEach((cell) => {
    cell.firstChild.data = '12,345,678,901'
  })`)
  for (const width of [320, 800, 1280]) {
    await page.setViewportSize({ width, height: 720 })
    expect(await page.evaluate(`document.querySelector('.groups tbody td').offsetHeight`)).toBeLessThan(50)
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
  }
  await page.getByRole('combobox', { name: 'Group' }).selectOption('By webhook source')
  await page.getByRole('row', { name: /^Order intake 1 1 0$/ }).waitFor()
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV' }).last().click()
  const file = await downloading
  expect(file.suggestedFilename()).toBe('usage-by-webhook-source.csv')
  expect(await readFile(await file.path(), 'utf8')).toBe(
    'Name,Deliveries accepted,Deliveries not accepted,Deliveries unknown\r\nOrder intake,1,1,0\r\n',
  )
})

const usageOf = (since: string, until: string) =>
  `/usage?days=chosen&since=2026-11-01T${since}.000Z&until=2026-11-01T${until}.000Z`

test('the hour that daylight saving repeats is counted twice, and a period keeps what a person does not change', async () => {
  const owner = await service.signIn()
  const page = await browser.newPage({ ...owner.context, timezoneId: 'America/New_York' })
  const change = async (name: string, time: string) => {
    await page.getByRole('combobox', { name: 'Time' }).selectOption('Choose a period …')
    await page.getByLabel(name, { exact: true }).fill(`2026-11-01T${time}`)
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  const hours = () => page.getByRole('img', { name: /^Starts by hour/ }).locator('g')
  await show(page, usageOf('04:00:00', '10:00:00'))
  await waitUntil(async () => (await hours().count()) === 6)
  await change('Since', '02:30')
  await page.getByRole('img', { name: /^Starts by hour/ }).waitFor()
  await waitUntil(async () => (await hours().count()) === 3)
  await follow(page, usageOf('06:30:15', '09:00:00'))
  await change('Until', '05:00')
  const { searchParams } = new URL(page.url())
  expect(searchParams.get('since')).toBe('2026-11-01T06:30:15.000Z')
  expect(searchParams.get('until')).toBe('2026-11-01T10:00:00.000Z')
})

test('the last hour ends now also after the clock was set back', async () => {
  const owner = await service.signIn()
  const page = await browser.newPage(owner.context)
  await show(page, '/runs?last=1h')
  const nowMs = Date.now() - 7_200_000
  await page.clock.setFixedTime(nowMs)
  const asked = page.waitForRequest(/\/app\/runs\?.*status=failed/)
  await follow(page, '/runs?last=1h&status=failed')
  const since = new URL((await asked).url()).searchParams.get('since')
  expect(since).toBe(new Date(nowMs - 3_600_000).toISOString())
})

test('a delivery is found among those of all sources by its order number, and by its source and outcome', async () => {
  const { owner, page, workflowId } = await openFilled(() => '/deliveries')
  await owner.saveSource({ name: 'Billing', endpoint_url: `${service.endpoint.url}/bills` })
  await owner.start(workflowId, 'order_id: NEEDLE-7731\ncustomer: Grace\ntotal: 3')
  await page.getByRole('searchbox', { name: 'Order number, word or id' }).fill('needle-7731')
  await page.getByRole('rowheader').nth(1).waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /Order intake.*order_id: NEEDLE-7731/ }).waitFor()
  expect(await page.getByRole('row').count()).toBe(1 + 1)
  expect(new URL(page.url()).searchParams.get('search')).toBe('needle-7731')
  await page.getByRole('searchbox', { name: 'Order number, word or id' }).fill('')
  await page.getByRole('combobox', { name: 'Source' }).selectOption('Billing')
  await page.getByRole('rowheader').nth(1).waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /Accepted 200 Verification/ }).waitFor()
  expect(await page.getByRole('row').count()).toBe(1 + 1)
  await page.getByRole('combobox', { name: 'Source' }).selectOption('Order intake')
  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('Rejected')
  await page
    .getByRole('row', { name: /Rejected/ })
    .first()
    .waitFor()
  await page.getByRole('combobox', { name: 'Status' }).selectOption('422')
  await page.getByRole('row', { name: /Rejected 422/ }).click()
  // Beside the list, which keeps its filters; the next one by a key.
  const drawer = page.getByRole('dialog', { name: 'Delivery to Order intake' })
  await drawer.getByText('The endpoint received it and did not accept it.').waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  // On more than one sheet of paper.
  const paper = await page.pdf({ width: '400px', height: '400px' })
  expect(paper.toString('latin1').match(/\/Type \/Page\b/g)?.length).toBeGreaterThan(1)
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  await page.getByRole('combobox', { name: 'Time' }).selectOption('Last 24 h')
  await page.getByRole('row', { name: /Rejected 422/ }).waitFor()
  expect(new URL(page.url()).searchParams.get('last')).toBe('24h')
  await page.getByRole('button', { name: 'Clear', exact: true }).click()
  await page.getByRole('row', { name: /Rejected 422/ }).click()
  await drawer.getByRole('button', { name: 'Older (j)' }).click()
  await drawer.getByText(/^Status 200/).waitFor()
  await drawer.getByRole('button', { name: 'Send again' }).click()
  const question = page.getByRole('dialog').last()
  await question.getByText('Your endpoint gets the same payload again and may act twice.').waitFor()
  await question.getByRole('button', { name: 'Send again' }).click()
  await page.getByRole('dialog').getByText('Resend of').waitFor()
  await page.keyboard.press('Escape')
  // And from everywhere.
  await page.keyboard.press('Control+k')
  await page.keyboard.insertText('needle-7731')
  await page.getByRole('option', { name: /order_id: NEEDLE-7731.*Delivery to Order intake/ }).click()
  await page.getByRole('heading', { name: 'Delivery to Order intake' }).waitFor()
})

test('what a list of deliveries shows is sent again together, after a preview, and is no failure any more', async () => {
  const { owner, page, workflowId } = await openFilled(() => '/deliveries')
  service.endpoint.answerWith({ status: 500 })
  const orders = ['R-1', 'R-2', 'R-3']
  for (const order of orders) await owner.start(workflowId, `order_id: ${order}\ncustomer: Grace\ntotal: 3`)
  await waitUntil(async () => {
    const { data } = await owner.call('listAllDeliveries', { query: { status: 500 } })
    return data.length === orders.length
  })
  service.endpoint.answerWith({ status: 204 })
  service.endpoint.requests.length = 0
  expect(await page.getByRole('button', { name: 'Send all again' }).count()).toBe(0)
  await page.getByRole('combobox', { name: 'Status' }).selectOption('503')
  await page.getByText('Nothing matches these filters.').first().waitFor()
  expect(await page.getByRole('button', { name: 'Send all again' }).count()).toBe(0)
  await page.getByRole('combobox', { name: 'Status' }).selectOption('500')
  // Those that are selected.
  const boxes = page.getByRole('row', { name: /Rejected 500/ }).getByRole('checkbox', { name: /^Select \d/ })
  for (const index of [0, 1]) await boxes.nth(index).check()
  // The preview changes nothing, so nothing is read again before it is shown.
  const { promise: held, resolve: readOn } = Promise.withResolvers<void>()
  await page.route('**/app/deliveries?*', (route) => held.then(() => route.fallback()))
  await page.getByRole('button', { name: 'Send selected again (2)' }).click()
  await page.getByRole('dialog', { name: 'Send 2 payloads again' }).getByRole('button', { name: 'Cancel' }).click()
  readOn()
  await page.setViewportSize({ width: 375, height: 800 })
  // The words beside the box, which select like it.
  await page.locator('thead label').click({ position: { x: 4, y: 12 } })
  expect(await page.getByRole('checkbox', { name: 'Select all' }).isChecked()).toBe(true)
  await page.getByRole('button', { name: 'Send all again' }).click()
  const dialog = page.getByRole('dialog', { name: 'Send 3 payloads again' })
  await dialog.getByRole('combobox', { name: 'How fast' }).selectOption('100 a second')
  await dialog.getByRole('button', { name: 'Send 3 payloads again' }).click()
  await page.getByRole('heading', { name: '3 payloads sent again' }).waitFor()
  await page.getByText('3 of 3').waitFor()
  await page.getByText('Done', { exact: true }).waitFor()
  await page.reload()
  await page.getByText('3 of 3').waitFor()
  const sent = service.endpoint.requests.map(({ json }) => (json as { order_id: string }).order_id)
  expect(sent.toSorted()).toEqual(orders)
  // The operator is no user; neither is who was deleted.
  await service.db.pool.query('UPDATE deliveries SET sent_by = NULL')
  await service.db.pool.query(`UPDATE starts SET origin = 'app', api_key_id = NULL, user_id = NULL`)
  await page.setViewportSize({ width: 1280, height: 720 })
  await show(page, '/deliveries')
  await page.getByText('Sent again by a person or the operator').first().waitFor()
  await show(page, '/runs')
  await page.getByText('A person or the operator').first().waitFor()
})

test('at most 1,000 of the payloads that a list shows are sent again at once, and a job that waits is stopped', async () => {
  const { owner, page, sourceId } = await openFilled()
  // None is left of those that are shown: each was deleted while the page was open.
  const ids = Array.from({ length: RESEND_IDS_MAX + 1 }, () => newId())
  await page.route('**/app/deliveries?*', async (route) => {
    const response = await route.fetch()
    const list = (await response.json()) as AppResponseBody<'listAllDeliveries'>
    const payload = list.data.find(({ kind }) => kind === 'payload')
    await route.fulfill({ response, json: { ...list, data: ids.map((id) => ({ ...payload, id })) } })
  })
  await show(page, '/deliveries?outcome=accepted')
  await page.locator('thead input').check()
  await page.getByText(`Send selected again (${RESEND_IDS_MAX + 1})`).click()
  await page.getByText('Select at most 1,000, and the others afterwards').waitFor()
  await page.locator('tbody input').last().uncheck()
  await page.getByText(`Send selected again (${RESEND_IDS_MAX})`).click()
  await page.getByText('was accepted since, is under way, or was deleted, or its source was.').waitFor()
  await page.keyboard.press('Escape')
  await page.unroute('**/app/deliveries?*')
  // One that waits for its source is stopped on its page.
  await owner.call('pauseWebhookSource', { params: { source_id: sourceId } })
  const job = await owner.call('createResendJob', {
    body: { id: newId(), source_id: sourceId, outcome: 'accepted', per_second: 1 },
  })
  await follow(page, `/resends/${job.id}`)
  await page.getByRole('heading', { name: 'Sending 1 payload again' }).waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByText('until it was stopped').waitFor()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('0 of 1 payload sent again')
  expect(await owner.call('getResendJob', { params: { resend_job_id: job.id } })).toMatchObject({
    status: 'stopped',
    done: 0,
  })
})

test('a payload that waits is found from the overview, shown, approved, and sent; another one is declined', async () => {
  const { owner, page, workflowId, sourceId } = await openFilled((filled) => `/sources/${filled.sourceId}`)
  await page.getByText('More settings').click()
  await page.getByRole('radio', { name: 'Ask a person every time' }).check()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved, without a request to the endpoint.').first().waitFor()
  const start = async (orderId: string) =>
    (await owner.start(workflowId, `order_id: ${orderId}\ncustomer: Ada\ntotal: 3`)).runId
  await start('W-1')
  await follow(page, '/')
  await page.getByRole('link', { name: '1 run waits for approval' }).click()
  await page.getByRole('link', { name: 'Approvals 1 waiting' }).waitFor()
  await page.getByText('"W-1"').first().waitFor()
  await page.getByText(`${service.endpoint.url}/orders`, { exact: true }).waitFor()
  await page.getByRole('checkbox', { name: 'All' }).check()
  await page.getByRole('button', { name: 'Approve selected (1)' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Approve and send' }).click()
  await page.getByText('Nothing waits for an approval').waitFor()
  const edited = await start('W-3')
  await follow(page, `/runs/${edited}`)
  await page.getByRole('button', { name: 'Edit' }).click()
  const dialog = page.getByRole('dialog')
  const payload = dialog.getByRole('textbox', { name: 'Payload' })
  const order = { order_id: 'W-3', customer: 'Ada' }
  await payload.fill(JSON.stringify({ ...order, total: 'three' }))
  await page.keyboard.press('Escape')
  await dialog.getByRole('button', { name: 'Stay here' }).click()
  await dialog.getByRole('button', { name: 'Approve and send' }).click()
  await dialog.getByText('total: ').waitFor()
  await payload.fill(JSON.stringify({ ...order, total: 4.5 }))
  await dialog.getByRole('button', { name: 'Approve and send' }).click()
  await page.getByRole('status').getByText('Succeeded').waitFor()
  expect(service.endpoint.requests.map(({ json }) => json)).toContainEqual({ ...order, total: 4.5 })
  await follow(page, `/runs/${await start('W-2')}`)
  await page.getByRole('button', { name: 'Decline' }).click()
  await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('Not an order.')
  await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click()
  await page.getByRole('status').getByText('Failed').waitFor()
  await page.getByText('declined the payload: Not an order').first().waitFor()
  expect(await page.getByRole('button', { name: 'Decline' }).count()).toBe(0)
  // One that is approved while its source is paused is not sent, also when its run is stopped.
  await follow(page, `/runs/${await start('W-5')}`)
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await owner.call('pauseWebhookSource', { params: { source_id: sourceId } })
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Approve and send' }).click()
  const timeline = page.getByRole('list', { name: 'Timeline' })
  await timeline.getByRole('heading', { name: 'Waits for a paused source' }).waitFor()
  await timeline.getByRole('heading', { name: 'Not sent to Order intake' }).waitFor()
  await page.getByRole('button', { name: 'Stop run' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop run' }).click()
  await timeline.getByRole('heading', { name: /^Cancelled by/ }).waitFor()
  await timeline.getByRole('heading', { name: 'Not sent to Order intake' }).waitFor()
  await owner.call('resumeWebhookSource', { params: { source_id: sourceId } })
  // More than the list shows.
  const waiting = await start('W-4')
  await follow(page, `/runs/${waiting}`)
  await page.getByRole('button', { name: 'Decline' }).waitFor()
  await service.db.pool.query(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, status, expires_at)
     SELECT gen_random_uuid(), organization_id, run_id, source_id, source_name, request_body, status, expires_at
     FROM approvals, generate_series(1, 100) WHERE run_id = $1`,
    [waiting],
  )
  await show(page, '/approvals')
  await page.getByText('These are the oldest 100. Others follow them.').waitFor()
})

test('the page of a run shows admins what its model was asked, and everybody why a payload was sent again, and what it waits for', async () => {
  const { owner, page, runId, deliveryId } = await openFilled()
  const reason = 'Repeated orders are ignored.'
  await service.db.pool.query(
    `UPDATE run_steps SET data = jsonb_set(data::jsonb, '{delivery,send_again}', $2)::json,
       earlier_steps = jsonb_set(earlier_steps::jsonb, '{0,data}', '{"agent":"anthropic:m","text":"Order"}')::json
     WHERE run_id = $1 AND kind = 'tool_call'`,
    [runId, JSON.stringify({ delivery_id: deliveryId, reason })],
  )
  const tools = [{ name: 'send_to_order_intake', description: 'Sends.', schema: { type: 'object' } }]
  await recordRunPrompt(service.db, runId, 1, {
    instructions: 'You execute one run.',
    tools,
    message: 'The first message.',
  })
  await show(page, `/runs/${runId}`)
  await page.getByText(`send it again: ${reason}`).waitFor()
  await page.getByText('What the model was asked').click()
  await page.getByRole('heading', { name: 'Request 1, not answered' }).waitFor()
  for (const text of ['You execute one run.', 'The first message.', '"send_to_order_intake"']) {
    await page.getByText(text).first().waitFor()
  }
  const { organizationId } = owner
  const ofMember = await browser.reusePage((await service.signIn({ role: 'member', organizationId })).context)
  await show(ofMember, `/runs/${runId}`)
  await ofMember.getByText(`send it again: ${reason}`).waitFor()
  await ofMember.getByText('Raw journal').waitFor()
  expect(await ofMember.getByText('What the model was asked').count()).toBe(0)
  const waits = 'The budget of the day is spent. The run waits for the next day.'
  await service.db.pool.query(
    `WITH run AS (UPDATE starts SET status = 'queued', started_at = created_at + interval '59.96 s', finished_at = NULL
       WHERE id = $1 RETURNING id)
     INSERT INTO run_steps (run_id, position, kind, data, epoch)
     SELECT id, position, 'note', data, 1 FROM run, unnest(ARRAY[1000, 1001], $2::json[]) AS note (position, data)`,
    // The run was woken after 10 minutes, and waits as before.
    [
      runId,
      [
        { code: 'budget_spent', text: waits },
        { code: 'taken_up_again', text: 'Resumed (attempt 1)' },
      ],
    ],
  )
  await show(ofMember, `/runs/${runId}`)
  await ofMember.locator('.notice').getByText(waits).waitFor()
  // The runner may be the only one.
  const resumed = ofMember.getByRole('listitem').filter({ hasText: 'Resumed (attempt 1)' })
  expect(await resumed.getByRole('heading').textContent()).toBe('Continued')
  await ofMember.getByText('1 min 0 s').first().waitFor()
})

test('a payload that waits for its paused source is not shown as sent, nor after its run was stopped', async () => {
  const { owner, page, workflowId, sourceId } = await openFilled()
  await owner.call('pauseWebhookSource', { params: { source_id: sourceId } })
  const { runId, sessionId } = await owner.start(workflowId, 'order_id: A-1\ncustomer: Ada\ntotal: 1')
  await show(page, `/runs/${runId}`)
  await page.locator('.notice').getByText('Order intake is paused.').waitFor()
  const payload = page.getByRole('heading', { name: /sent to Order intake/i })
  expect(await payload.textContent()).toBe('Not sent to Order intake')
  // Its session does not say that it waits for a runner, nor that nothing of it was sent.
  await follow(page, `/sessions/${sessionId}`)
  await page.getByRole('row', { name: /Queued.* See its run$/ }).waitFor()
  await page.getByRole('button', { name: 'Stop queued runs' }).click()
  await page.getByRole('dialog').getByText('They end as cancelled, and nothing more of them is sent.').waitFor()
  await page.keyboard.press('Escape')
  await follow(page, `/runs/${runId}`)
  // Woken, but the organization is suspended: the source is not what it waits for.
  const { organizationId } = owner
  await service.db.prisma.organization.update({ where: { id: organizationId }, data: { isSuspended: true } })
  await owner.call('resumeWebhookSource', { params: { source_id: sourceId } })
  await page.reload()
  await page.locator('.notice').getByText('It waits for the earlier starts of its session, or').waitFor()
  expect(await page.locator('.notice').getByText('Order intake is paused.').count()).toBe(0)
  await owner.call('cancelRun', { params: { run_id: runId } })
  await page.getByText(/^Cancelled by /).waitFor()
  expect(await payload.textContent()).toBe('Not sent to Order intake')
})

test('a count that ends at a limit is shown as at least so many', async () => {
  const { owner, page, sourceId } = await openFilled()
  await owner.call('pauseWebhookSource', { params: { source_id: sourceId } })
  await page.route('**/app/overview', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...((await response.json()) as object), waiting_runs: 200 } })
  })
  await page.route(`**/app/webhook-sources/${sourceId}`, async (route) => {
    const response = await route.fetch()
    const source = (await response.json()) as AppResponseBody<'getWebhookSource'>
    await route.fulfill({ response, json: { ...source, state: { ...source.state, waiting_runs: 1_000 } } })
  })
  await show(page, '/')
  await page.getByRole('link', { name: '200+ runs wait for approval' }).waitFor()
  await show(page, `/sources/${sourceId}`)
  expect(await page.getByText('1,000+ runs wait until it is resumed').count()).toBe(1)
})

test('a delivery whose reused connection ended is not said to be one that the service stopped', async () => {
  const { page, deliveryId } = await openFilled()
  const reason = 'The endpoint ended the connection of an earlier request before it answered this one.'
  await service.db.pool.query(
    `UPDATE deliveries SET outcome = 'unknown', status = NULL, answer = NULL, reason = $2 WHERE id = $1`,
    [deliveryId, reason],
  )
  await show(page, `/deliveries/${deliveryId}`)
  const shown = await page.locator('.notice').filter({ hasText: reason }).textContent()
  expect(shown).toBe(`${reason}The endpoint may have received it, and may have acted on it.`)
})

test('the page of a run whose large steps are not read says so in place of each', async () => {
  const { page, runId } = await openFilled()
  const text = 'x'.repeat(1_500_000)
  const answer = { turn: 1, model: 'm', finish_reason: 'stop', input_tokens: 1, output_tokens: 1 }
  const steps = [
    { kind: 'note', data: { code: 'large', text } },
    { kind: 'model_answer', data: { ...answer, parts: [{ type: 'text', text }] } },
    { kind: 'tool_call', data: { call_id: '9', tool: 'send', arguments: { text } } },
  ]
  await service.db.pool.query(
    `INSERT INTO run_steps (run_id, position, kind, data, epoch)
     SELECT $1, 1000 + number, step->>'kind', (step->'data')::json, 1
     FROM unnest($2::json[]) WITH ORDINALITY AS item (step, number)`,
    [runId, steps],
  )
  await show(page, `/runs/${runId}`)
  const timeline = page.getByRole('list', { name: 'Timeline' })
  const omitted = timeline.getByRole('listitem').filter({ hasText: 'It is large' })
  await omitted.nth(1).waitFor()
  expect(await omitted.getByRole('heading').allTextContents()).toEqual([
    'The agent answered',
    'The agent called a tool',
  ])
})

test('a remark in the timeline of a run is no warning', async () => {
  const { page, runId } = await openFilled()
  const notes = ['files_attached', 'no_rule_matched', 'history_halved', 'of_an_earlier_release'].map((code) => ({
    code,
    text: 'As noted.',
  }))
  await service.db.pool.query(
    `INSERT INTO run_steps (run_id, position, kind, data, epoch)
     SELECT $1, 1000 + number, 'note', data, 1 FROM unnest($2::json[]) WITH ORDINALITY AS note (data, number)`,
    [runId, notes],
  )
  await show(page, `/runs/${runId}`)
  const entries = page.getByRole('list', { name: 'Timeline' }).getByRole('listitem').filter({ hasText: 'As noted.' })
  await entries.first().waitFor()
  const shown = await entries.evaluateAll((items) =>
    items.map((item) => [item.className, item.querySelector('h3')?.textContent]),
  )
  expect(shown).toEqual([
    ['quiet', 'Files attached'],
    ['quiet', 'No rule matched'],
    ['warn', 'History halved'],
    ['warn', 'of an earlier release'],
  ])
})

/** Inserts newer runs that have succeeded, each in a session of its own. */
async function insertRuns(workflowId: string, count: number): Promise<void> {
  await service.db.pool.query(
    `WITH new AS MATERIALIZED (
       SELECT gen_random_uuid() AS id, gen_random_uuid() AS session_id, now() + number * interval '1 ms' AS at
       FROM generate_series(1, $2) AS number
     ), sessions AS (
       INSERT INTO sessions (id, organization_id, last_start_number, last_finished_number, created_at)
       SELECT session_id, organization_id, 1, 1, at FROM new, workflows WHERE workflows.id = $1
     )
     INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status, attempts,
       created_at, started_at, finished_at)
     SELECT new.id, organization_id, workflows.id, session_id, 1, 'auto_run', '', new.id::text, 'succeeded', 1, at, at, at
     FROM new, workflows WHERE workflows.id = $1`,
    [workflowId, count],
  )
}

const running = (page: Page) => page.getByRole('row', { name: /Running/ })
/** A session with one start, which has not ended. */
const waitingSession = (page: Page) => page.getByRole('row', { name: /1 1$/ })

test('a row that has not ended is read again wherever it is in a list', async () => {
  const owner = await service.signIn()
  const { workflowId, sourceId } = await fill(service, owner)
  const endpointAnswer = Promise.withResolvers<object>()
  service.endpoint.answerWith(() => endpointAnswer.promise)
  await owner.start(workflowId, 'order_id: A-1\ncustomer: Grace\ntotal: 1')
  const openList = async (path: string) => {
    const page = await browser.reusePage(owner.context)
    await show(page, path)
    return page
  }
  const [first, filtered, sessions] = [await openList('/runs'), await openList('/runs'), await openList('/sessions')]
  const deliveries = await openList('/deliveries')
  const underWay = deliveries.getByRole('row', { name: /In flight/ })
  await underWay.waitFor()
  await running(first).waitFor()
  await filtered.getByRole('combobox', { name: 'Status' }).selectOption('Running')
  await filtered
    .getByRole('row', { name: /Succeeded/ })
    .first()
    .waitFor({ state: 'detached' })
  await waitingSession(sessions).waitFor()

  // More newer rows than a page has: it is outside of every first page now.
  await insertRuns(workflowId, 30)
  const older = await openList('/runs')
  expect(await running(older).count()).toBe(0)
  await older.getByRole('button', { name: 'Older' }).click()
  await running(older).waitFor()
  const rows = await older.getByRole('row').count()
  await service.db.pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, finished_at)
     SELECT gen_random_uuid(), $1, $2, 'payload', 'accepted', 200, '{}', now() FROM generate_series(1, 30)`,
    [owner.organizationId, sourceId],
  )

  endpointAnswer.resolve({})
  for (const page of [first, filtered, older]) await running(page).waitFor({ state: 'detached' })
  await underWay.waitFor({ state: 'detached' })
  await filtered.getByRole('row', { name: /Succeeded/ }).waitFor()
  await waitingSession(sessions).waitFor({ state: 'detached' })
  await sessions.getByRole('row', { name: /1 0$/ }).first().waitFor()
  expect(await older.getByRole('row').count()).toBe(rows)
})

const openId = (url: string) => new URL(url, service.url).searchParams.get('open')

test('a log keeps its position and filter when an entry opens and closes, and the focus goes to the entry shown last', async () => {
  const { owner, page, sourceId } = await openFilled(undefined, { viewport: { width: 1280, height: 400 } })
  for (let count = 0; count < 30; count += 1) await owner.call('testWebhookSource', { params: { source_id: sourceId } })
  // The address of its log leads to the deliveries with this source.
  await show(page, `/sources/${sourceId}/logs?kind=verification`)
  const links = page.getByRole('rowheader').getByRole('link')
  const position = async () => await page.evaluate<number>('scrollY')
  await links.nth(14).scrollIntoViewIfNeeded()
  const before = await position()
  expect(before).toBeGreaterThan(200)
  expect(await links.count()).toBe(25)
  await links.nth(14).click()
  const drawer = page.getByRole('dialog')
  await drawer.getByText('Delivery id', { exact: true }).waitFor()
  expect(await position()).toBe(before)
  for (const key of ['k', 'k']) {
    const shown = page.url()
    await page.keyboard.press(key)
    await page.waitForURL((url) => url.href !== shown)
    // Before the drawer shows it, the key leads from the one before.
    await drawer.getByTitle(`Copy ${openId(page.url())}`).waitFor()
  }
  const last = openId(page.url())
  expect(await page.title()).toMatch(/^Verification of /)
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'detached' })
  expect(await page.title()).toMatch(/^Logs of /)
  await links.nth(12).and(page.locator(':focus')).waitFor()
  expect(openId(String(await links.nth(12).getAttribute('href')))).toBe(last)
  expect(page.url()).toBe(`${service.url}/deliveries?kind=verification&source_id=${sourceId}`)
  expect(await position()).toBe(before)
  // After the last row that is shown, the next page is read.
  await links.last().click()
  await drawer.getByText('Delivery id', { exact: true }).waitFor()
  const oldest = page.url()
  await page.keyboard.press('j')
  await page.waitForURL((url) => url.href !== oldest)
  await drawer.getByTitle(`Copy ${openId(page.url())}`).waitFor()
  // Without the payloads.
  expect(await links.count()).toBe(31)
  await page.keyboard.press('Escape')
  // What is cleared are its filters.
  await page.getByRole('button', { name: 'Clear', exact: true }).click()
  await page.waitForURL(`${service.url}/deliveries?source_id=${sourceId}`)
})

test('the log of a source leads back to it, says so while it is empty, also since what was sent is deleted, and is not found for an unknown source', async () => {
  const { owner, page, sourceId } = await openFilled(({ sourceId: id }) => `/deliveries?source_id=${id}`)
  await page.getByRole('heading', { name: 'Logs of Order intake' }).waitFor()
  await owner.call('deleteWebhookSource', { params: { source_id: sourceId } })
  await page.getByRole('heading', { name: 'Logs of a deleted source' }).waitFor()
  await page.getByRole('combobox', { name: 'Source' }).getByText('a deleted source').waitFor({ state: 'attached' })
  const { id } = await owner.saveSource({ name: 'Billing', endpoint_url: `${service.endpoint.url}/bills` })
  await service.db.prisma.delivery.deleteMany({ where: { sourceId: id } })
  await follow(page, `/deliveries?source_id=${id}`)
  await page.getByRole('heading', { name: 'Nothing is in the log' }).waitFor()
  expect(await findAxeIssues(page)).toEqual([])
  await page.locator('.back', { hasText: 'Billing' }).click()
  await page.getByRole('heading', { name: 'Billing' }).waitFor()
  await page.getByText('None in the log').nth(1).waitFor()
  await follow(page, `/deliveries?source_id=${newId()}`)
  await page.getByRole('heading', { name: 'Not found' }).waitFor()
})

test('filters are in the address, and are cleared beside them and under an empty result, with what was typed', async () => {
  const { page, workflowId, runId } = await openFilled('/runs')
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const workflow = page.getByRole('combobox', { name: 'Workflow' })
  await workflow.fill('weekly')
  await page.getByRole('option', { name: 'Weekly report' }).click()
  await page.getByText('Nothing matches these filters.').first().waitFor()
  await follow(page, `/runs?workflow=${workflowId}`)
  await page.getByRole('row').nth(2).waitFor()
  expect(await page.getByRole('row').count()).toBe(3)
  await waitUntil(async () => (await workflow.inputValue()) === 'Forward orders')

  await follow(page, `/workflows?search=nothing-has-this-name`)
  await button('Clear the filters').click()
  await page.getByRole('rowheader', { name: 'Forward orders' }).waitFor()
  const search = page.getByRole('searchbox', { name: 'Find a workflow' })
  await search.and(page.locator(':focus')).waitFor()
  expect(await search.inputValue()).toBe('')
  await follow(page, `/runs?workflow=${workflowId}&status=failed`)
  expect(await page.getByRole('row').count()).toBe(2)
  await button('Clear').click()
  await page.getByRole('row').nth(2).waitFor()
  expect(new URL(page.url()).search).toBe('')
  expect(await button('Clear').count()).toBe(0)

  // A link to the list forgets what was typed, and the back button brings it back.
  const words = page.getByRole('searchbox', { name: 'Order number, word or id' })
  await words.fill('A-1001')
  await page.waitForURL(/search=A-1001/)
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Runs' }).click()
  await waitUntil(async () => (await words.inputValue()) === '')
  await page.goBack()
  await waitUntil(async () => (await words.inputValue()) === 'A-1001')

  // A period says what is wrong with it.
  await page.getByRole('combobox', { name: 'Time' }).selectOption('Choose a period …')
  const period = page.getByRole('dialog', { name: 'Choose a period' })
  const choose = async (since: string, until: string) => {
    await period.getByLabel('Since').fill(since)
    await period.getByLabel('Until').fill(until)
    await period.getByRole('button', { name: 'Show' }).click()
  }
  // Only the month: the value is empty. The calendar of Firefox fills in a date without a time.
  await period.getByLabel('Since').press('3')
  await period.getByRole('button', { name: 'Show' }).click()
  await period.getByText('Enter all of it, or clear it.').waitFor()
  await choose('12025-03-01T10:00', '')
  await period.getByText('Enter a year of four digits.').waitFor()
  await choose('2025-03-01T10:00', '2025-03-01T09:00')
  await period.getByText('Enter a time after the beginning.').waitFor()
  await choose('2025-03-01T10:00', '')
  await button('Remove the filter Since Mar 1, 2025, 10:00 AM').waitFor()

  // A column is left out while it is empty, and an error is also on the card of a phone.
  await page.setViewportSize({ width: 375, height: 800 })
  await follow(page, `/workflows/${workflowId}/runs`)
  await page.getByText('Order intake did not accept the payload').waitFor()
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('columnheader', { name: 'Error' }).waitFor()
  await page.getByRole('combobox', { name: 'Status' }).selectOption('Succeeded')
  await page.getByRole('columnheader', { name: 'Error' }).waitFor({ state: 'detached' })
  // Without hovering over it. On a busy machine the run is older than 30 s.
  expect(await page.getByRole('row', { name: /\d+:\d+:\d+ [AP]M (just now|\d+ min\. ago)/ }).count()).toBe(1)
  await follow(page, `/runs/${runId}`)
  await page.getByRole('link', { name: 'Start again' }).click()
  const text = page.getByRole('textbox', { name: 'Text' })
  await text.waitFor()
  expect(await text.inputValue()).toContain('A-1001')
})

test('an address without a page has the navigation, and one that cannot be read says so in words, without “Try again”', async () => {
  const { page } = await open('/no-such-page')
  await page.getByRole('main').getByRole('heading', { name: 'There is no page at this address' }).waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'People' }).click()
  await page.waitForURL('**/people')
  for (const [path, text] of [
    ['/runs/ca440bfa', 'The address has an id that is not complete.'],
    ['/runs?since=yesterday', 'The address has a filter that cannot be read.'],
    ['/runs?session=ca440bfa', 'The address has an id that is not complete.'],
    ['/runs?status=done', 'The address has a filter that cannot be read.'],
  ] as const) {
    await follow(page, path)
    await page.getByRole('alert').getByText(text).waitFor()
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  }
})
