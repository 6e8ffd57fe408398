import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { recordRunPrompt } from '@workflow-service/database'
import { useBrowser } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

test('the overview leads through the first steps, then counts the day and opens what needs attention', async () => {
  const owner = await service.signIn()
  const page = await browser.newPage(owner.context)
  await show(page, '/')
  const steps = page.getByRole('listitem').filter({ hasText: 'To do' })
  await steps.first().waitFor()
  expect(await steps.count()).toBe(3)
  const demo = await readFile(new URL('../../../infra/local-stack/demo.yaml', import.meta.url), 'utf8')
  await owner.call('saveWebhookSource', {
    params: { source_id: /webhook_sources:\n {2}- id: (\S+)/.exec(demo)?.[1] ?? '' },
    body: {
      name: 'Intake of the demo',
      description: '',
      endpoint_url: service.endpoint.url,
      signing_secret: null,
      example_request_body: {},
      version: null,
    },
  })
  // What the demo has made is no step done.
  await page.getByText('The demo has one. Make your own for your endpoint.').waitFor()
  expect(await steps.count()).toBe(3)
  await fill(service, owner)
  // The page finds out by itself.
  await page.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: '1 Runs failed' }).click()
  await page.getByRole('heading', { name: 'Runs' }).waitFor()
  await page.getByRole('cell', { name: 'Failed' }).waitFor()
  expect(await page.getByRole('cell', { name: 'Succeeded' }).count()).toBe(0)
  await page.goBack()
  const attention = page.getByRole('listitem').filter({ hasText: 'Run failed' })
  await attention.getByRole('link', { name: 'Forward orders' }).click()
  await page.getByRole('heading', { name: 'Run of Forward orders' }).waitFor()
}, 90_000)

test('each number of the last 24 hours is that of the list which it opens, also with several sources', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  await owner.call('saveWebhookSource', {
    params: { source_id: randomUUID() },
    body: {
      name: 'Billing',
      description: '',
      endpoint_url: `${service.endpoint.url}/bills`,
      signing_secret: null,
      example_request_body: {},
      version: null,
    },
  })
  service.endpoint.answerWith({ status: 500 })
  const id = randomUUID()
  const body = { id, context: 'order_id: A-1\ncustomer: Ada\ntotal: 1', session_id: null }
  await owner.call('startWorkflow', { params: { workflow_id: workflowId }, body })
  const page = await browser.newPage(owner.context)
  await show(page, '/')
  await page.getByRole('link', { name: '2 Runs failed 2 deliveries not accepted' }).waitFor()
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
})

test('the demo, which needs nothing, is the first of the first steps', async () => {
  const owner = await service.signIn()
  const demo = await readFile(new URL('../../../infra/local-stack/demo.yaml', import.meta.url), 'utf8')
  const id = /workflows:\n {2}- id: (\S+)/.exec(demo)?.[1] ?? ''
  const scope = 'company_wide'
  await owner.call('createWorkflow', { body: { id, name: 'Demo', description: 'Send it to "Order intake".', scope } })
  await owner.call('setWorkflowActive', { params: { workflow_id: id }, body: { is_active: true } })
  const page = await browser.newPage(owner.context)
  await show(page, '/')
  const first = page.getByRole('listitem').filter({ hasText: 'To do' }).first()
  await first.getByRole('link', { name: 'Try the demo' }).waitFor()
  expect(await page.getByRole('link', { name: 'Try the demo' }).count()).toBe(1)
})

test('a member is not sent to pages of admins by the first steps', async () => {
  const { organizationId } = await service.signIn()
  const page = await browser.newPage((await service.signIn({ role: 'member', organizationId })).context)
  await show(page, '/')
  await page.getByRole('heading', { name: 'First steps' }).waitFor()
  expect(await page.getByText('An admin of your organization does this.').count()).toBe(1)
})

test('a member sees what a webhook source sends', async () => {
  const owner = await service.signIn()
  const { sourceId } = await fill(service, owner)
  const { organizationId } = owner
  const page = await browser.newPage((await service.signIn({ role: 'member', organizationId })).context)
  await show(page, `/sources/${sourceId}`)
  await page.getByRole('heading', { name: 'Example body' }).waitFor()
  expect(await page.getByRole('region', { name: 'example body' }).textContent()).toContain('Jane Doe')
})

test('runs are filtered by their workflow in the URL, and start again with the same text', async () => {
  const owner = await service.signIn()
  const { workflowId, runId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, '/runs')
  await page.getByRole('combobox', { name: 'Workflow' }).fill('weekly')
  await page.getByRole('option', { name: 'Weekly report' }).click()
  await page.getByText('Nothing matches these filters.').waitFor()
  await show(page, `/runs?workflow=${workflowId}`)
  expect(await page.getByRole('row').count()).toBe(3)
  expect(await page.getByRole('combobox', { name: 'Workflow' }).inputValue()).toBe('Forward orders')
  await show(page, `/runs/${runId}`)
  await page.getByRole('link', { name: 'Start again' }).click()
  const text = page.getByRole('textbox', { name: 'Text' })
  await text.waitFor()
  expect(await text.inputValue()).toContain('A-1001')
})

test('a session is opened, started in, shows what its starts wait for, and is closed', async () => {
  const owner = await service.signIn()
  const { workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, '/sessions')
  await page.getByRole('button', { name: 'New session' }).click()
  await page.getByRole('heading', { name: 'Nothing was started in it' }).waitFor()
  const sessionPath = new URL(page.url()).pathname
  const sessionId = sessionPath.split('/').at(-1) ?? ''
  await page.getByRole('combobox', { name: 'Start in this session' }).fill('forward')
  const endpointAnswers = Promise.withResolvers<void>()
  service.endpoint.answerWith(async () => {
    await endpointAnswers.promise
    return {}
  })
  await page.getByRole('option', { name: 'Forward orders' }).click()
  await page.getByRole('textbox', { name: 'Text' }).fill('order_id: A-1\ncustomer: Grace\ntotal: 1')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('heading', { name: 'Run of Forward orders' }).waitFor()
  for (let start = 2; start <= 3; start += 1) {
    await owner.call('startWorkflow', {
      params: { workflow_id: workflowId },
      body: { id: randomUUID(), context: 'order_id: A-2', session_id: sessionId },
    })
  }
  await show(page, sessionPath)
  await page.getByRole('row', { name: /^1\. Forward orders.*Running/ }).waitFor()
  await page.getByRole('row', { name: /^3\. Forward orders.*Queued.*Start 2$/ }).waitFor()
  await show(page, '/')
  await page.getByRole('link', { name: '2 Runs queued' }).click()
  await page.getByRole('cell', { name: 'Queued' }).nth(1).waitFor()
  expect(await page.getByRole('cell', { name: 'Running' }).count()).toBe(0)
  await show(page, sessionPath)
  await page.getByRole('button', { name: 'Close session' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Close session' }).click()
  await page.getByText('Closed', { exact: true }).waitFor()
  expect(await page.getByRole('button', { name: 'Close session' }).count()).toBe(0)
  endpointAnswers.resolve()
})

test('the usage has a table under every chart, by workflow, webhook source and key, and downloads as CSV', async () => {
  const owner = await service.signIn()
  await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, '/usage')
  await page.getByText('Table', { exact: true }).first().click()
  expect(await page.getByRole('table', { name: 'Starts by day' }).getByRole('row').count()).toBe(1 + 7)
  // Nothing to worry about.
  expect(await page.getByText('0 unknown', { exact: true }).getAttribute('class')).toBe('badge quiet')
  await show(page, '/usage?days=1')
  const chart = page.getByRole('img', { name: 'Starts by hour: 1 succeeded, 1 failed, 0 not ended' })
  expect((await chart.boundingBox())?.height).toBeLessThan(200)
  await page.getByText('Table', { exact: true }).first().click()
  expect(await page.getByRole('table', { name: 'Starts by hour' }).getByRole('row').count()).toBe(1 + 24)
  await page.getByRole('row', { name: /^Forward orders 1 1 0 \d+ ms/ }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
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

test('a payload that waits is found from the overview, shown, approved, and sent; another one is declined', async () => {
  const owner = await service.signIn()
  const { sourceId, workflowId } = await fill(service, owner)
  const page = await browser.newPage(owner.context)
  await show(page, `/sources/${sourceId}`)
  await page.getByText('More settings').click()
  await page.getByRole('radio', { name: 'Ask a person every time' }).check()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved, without a request to the endpoint.').first().waitFor()
  const start = async (orderId: string) => {
    const id = randomUUID()
    const context = `order_id: ${orderId}\ncustomer: Ada\ntotal: 3`
    const body = { id, context, session_id: null }
    await owner.call('startWorkflow', { params: { workflow_id: workflowId }, body })
    return id
  }
  await start('W-1')
  await show(page, '/')
  await page.getByRole('link', { name: '1 run waits for approval' }).click()
  await page.getByRole('row', { name: /Waiting for approval/ }).click()
  await page.getByText('W-1').first().waitFor()
  await page.getByText(`${service.endpoint.url}/orders`, { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Approve and send' }).click()
  await page.getByRole('status').getByText('Succeeded').waitFor()
  await show(page, `/runs/${await start('W-2')}`)
  await page.getByRole('button', { name: 'Decline' }).click()
  await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('Not an order.')
  await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click()
  await page.getByRole('status').getByText('Failed').waitFor()
  await page.getByText('declined the payload: Not an order').first().waitFor()
  expect(await page.getByRole('button', { name: 'Decline' }).count()).toBe(0)
}, 90_000)

test('the page of a run shows admins what its model was asked, and everybody why a payload was sent again', async () => {
  const owner = await service.signIn()
  const { runId, deliveryId } = await fill(service, owner)
  const reason = 'Repeated orders are ignored.'
  await service.db.pool.query(
    `UPDATE run_steps SET data = CASE kind
       WHEN 'message' THEN '{"agent":"anthropic:m","text":"Order"}'::json
       ELSE jsonb_set(data::jsonb, '{delivery,send_again}', $2)::json END
     WHERE run_id = $1 AND kind IN ('message', 'tool_call')`,
    [runId, JSON.stringify({ delivery_id: deliveryId, reason })],
  )
  const tools = [{ name: 'send_to_order_intake', description: 'Sends.', schema: { type: 'object' } }]
  await recordRunPrompt(service.db, runId, 1, {
    instructions: 'You execute one run.',
    tools,
    message: 'The first message.',
  })
  const page = await browser.newPage(owner.context)
  await show(page, `/runs/${runId}`)
  await page.getByText(`send it again: ${reason}`).waitFor()
  await page.getByText('What the model was asked').click()
  await page.getByRole('heading', { name: 'Request 1, not answered' }).waitFor()
  for (const text of ['You execute one run.', 'The first message.', '"send_to_order_intake"']) {
    await page.getByText(text).first().waitFor()
  }
  const { organizationId } = owner
  const ofMember = await browser.newPage((await service.signIn({ role: 'member', organizationId })).context)
  await show(ofMember, `/runs/${runId}`)
  await ofMember.getByText(`send it again: ${reason}`).waitFor()
  await ofMember.getByText('Raw journal').waitFor()
  expect(await ofMember.getByText('What the model was asked').count()).toBe(0)
})
