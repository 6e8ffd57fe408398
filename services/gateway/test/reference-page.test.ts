import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { OPERATIONS, PUBLIC_ERROR_CODES } from '@workflow-service/contract'
import { findAxeIssues, type Page, useBrowser } from '@workflow-service/testkit/use-browser'
import { startableWorkflow, useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway({ RATE_LIMIT_PER_MINUTE: '600' })
const browser = useBrowser()

const PHONE = { width: 375, height: 812 }
const workflow = startableWorkflow()

beforeAll(async () => {
  await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
  await gateway.createEndedRun(workflow.id)
})

async function open(path = '/docs', options: Parameters<typeof browser.reusePage>[0] = {}): Promise<Page> {
  const page = await browser.reusePage(options)
  await page.goto(`${gateway.url}${path}`)
  await page.locator('article:not([hidden])').waitFor()
  return page
}

/** Shows everything at once. */
async function showAll(page: Page): Promise<void> {
  await page.evaluate(`for (const each of document.querySelectorAll('article, figure')) each.removeAttribute('hidden')`)
  await page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`)
}

const mapAll = (page: Page, selector: string, property: string): Promise<string[]> =>
  page.evaluate<string[]>(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((each) => each.${property})`)

/** Axe's findings about the article that is shown, in light and in the dark. Removes the others, for speed. */
async function findIssues(page: Page): Promise<string[]> {
  await page.evaluate(`for (const each of document.querySelectorAll('article[hidden]')) each.remove()`)
  const light = await findAxeIssues(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  return [...light, ...(await findAxeIssues(page))]
}

describe('the reference page', () => {
  test('has no axe findings in light and dark, on a desktop and on a phone', async () => {
    expect(await findIssues(await open('/docs#receiving'))).toEqual([])
    // Other controls are shown, and others hidden.
    expect(await findIssues(await open('/docs#errors', { viewport: PHONE }))).toEqual([])
  })

  test('fits 375 pixels, and is short enough for a phone', async () => {
    const page = await open('/docs#startWorkflow', { viewport: PHONE })
    expect(await page.evaluate<number>('document.documentElement.scrollHeight')).toBeLessThan(5_000)
    await showAll(page)
    expect(await page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]')).toEqual([375, 375])
  })

  test('shows every operation, webhook, guide and error code, one article at a time', async () => {
    const page = await open('/')
    expect(new URL(page.url()).pathname).toBe('/docs')
    const ids = await mapAll(page, 'article', 'id')
    const guides = ['first-start', 'sessions', 'idempotency', 'receiving', 'rotating-a-secret', 'going-live']
    const webhooks = ['verificationWebhook', 'payloadWebhook', 'eventWebhook']
    expect(ids).toEqual(['introduction', ...guides, ...Object.keys(OPERATIONS), ...webhooks, 'errors'])
    for (const code of PUBLIC_ERROR_CODES) expect(await page.locator(`#error-${code}`).count()).toBe(1)
    const targets = (await mapAll(page, 'a[href^="#"]', 'hash')).map((hash) => hash.slice(1))
    const missing = await page.evaluate<string[]>(
      `(${JSON.stringify([...new Set(targets)])}).filter((id) => !document.getElementById(id))`,
    )
    expect(missing).toEqual([])

    await page.getByRole('link', { name: 'Start a workflow' }).first().click()
    // The link itself reveals its article; the page then hides the others.
    await page.locator('#introduction[hidden]').waitFor({ state: 'attached' })
    expect(await page.locator('article:not([hidden])').count()).toBe(1)
    expect(await page.title()).toContain('Start a workflow')
    await page.setViewportSize(PHONE)
    await page.locator('.menu').press('Enter')
    await page.locator('#nav a').last().press('Tab')
    expect(await page.locator('.menu').getAttribute('aria-expanded')).toBe('false')
    await page.locator('.menu').click()
    await page.getByRole('link', { name: 'Going live' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Going live' }).waitFor()
  })

  test('finds articles, fields and error codes by keyboard', async () => {
    const page = await open()
    const search = async (text: string): Promise<string> => {
      await page.keyboard.press('/')
      await page.keyboard.type(text)
      await page.locator('#results a').first().waitFor()
      await page.keyboard.press('Enter')
      await page.locator('dialog[open]').waitFor({ state: 'detached' })
      return new URL(page.url()).hash
    }
    expect(await search('session_closed')).toBe('#error-session_closed')
    await page.keyboard.press('Tab')
    // The next link, not the first of the article.
    expect(await page.evaluate('document.activeElement.hash')).toBe('#field-codes')
    expect(await search('rotating')).toBe('#rotating-a-secret')
    expect(await search('list workflows')).toBe('#listWorkflows')
    await page.keyboard.press('/')
    await page.keyboard.type('rate limit')
    // The guide, before the headers of this name of each operation.
    const found = await page
      .locator('#results a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    expect(found.slice(0, 3)).toContain('#going-live-your-calls')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('no such thing anywhere')
    expect(await page.locator('dialog').getByRole('status').textContent()).toContain('Nothing found')
    await page.keyboard.press('Escape')
    await page.locator('dialog[open]').waitFor({ state: 'detached' })
  })

  test('shows the samples of all operations in the language that a reader chose', async () => {
    const page = await open('/docs#startWorkflow')
    await page.locator('#startWorkflow').getByRole('combobox', { name: 'Request' }).selectOption('TypeScript')
    await page.goto(`${gateway.url}/docs#getOrganization`)
    const sample = page.locator('#getOrganization .aside figure:not([hidden])').first()
    expect(await sample.textContent()).toContain('client.organization.get()')
    expect(await sample.textContent()).toContain(gateway.url)
  })

  test('sends requests to the gateway, and keeps the key in memory only', async () => {
    const page = await open('/docs#listWorkflows')
    const article = (id: string) => page.locator(`article#${id}`)
    await article('listWorkflows').getByRole('button', { name: 'Send request' }).click()
    await article('listWorkflows').getByText('401 Unauthorized', { exact: true }).waitFor()

    await article('listWorkflows').getByLabel('API key').fill(gateway.organization.key)
    await article('listWorkflows').getByLabel('limit').fill('1')
    await article('listWorkflows').getByRole('button', { name: 'Send request' }).click()
    await article('listWorkflows').getByText('200 OK').waitFor()

    await page.getByRole('link', { name: 'Start a workflow' }).first().click()
    const start = article('startWorkflow')
    await start.getByRole('button', { name: 'Send request' }).click()
    await start.getByText('Fill in workflow_id.').waitFor()
    await start.getByLabel('workflow_id').fill(workflow.id)
    expect(await start.getByLabel('Idempotency-Key').inputValue()).toMatch(/^\d+-\d+$/)
    await start.getByRole('button', { name: 'Send request' }).click()
    await start.getByText('202 Accepted').waitFor()
    const answer = await start.locator('.answer').textContent()
    expect(answer).toMatch(/ratelimit"requests";r=\d+;t=\d+ratelimit-policy"requests";q=600;w=60/)
    expect(answer).toMatch(/x-request-id[\da-f-]{36}/)
    expect(answer).toContain(`"workflow_id": "${workflow.id}"`)
    // What was typed is in the samples, of other operations too, and what was tried can be repeated in a terminal.
    for (const label of ['curl', 'TypeScript', 'Python']) {
      const samples = await mapAll(page, `[data-title="Request"] figure[data-label="${label}"] code`, 'textContent')
      expect(samples.filter((text) => text.includes(workflow.id))).toHaveLength(2)
      expect(samples.filter((text) => !text.includes(gateway.organization.key))).toEqual([])
    }
    await page.evaluate('navigator.clipboard.writeText = (text) => void (globalThis.copied = text)')
    await start.getByRole('button', { name: 'Copy as curl' }).click()
    await start.getByText('Copied', { exact: true }).waitFor()
    const { stdout } = await promisify(execFile)('bash', ['-c', await page.evaluate<string>('copied')])
    expect(JSON.parse(stdout)).toEqual(JSON.parse((await start.locator('.answer pre').textContent()) ?? ''))
    await start.getByLabel('Idempotency-Key').fill('7…')
    await start.getByRole('button', { name: 'Send request' }).click()
    await start.getByText('Idempotency-Key has a character that a header cannot carry.').waitFor()
    await start.getByLabel('Body').fill('{"context": ')
    await start.getByRole('button', { name: 'Send request' }).click()
    await start.getByText('The body is not JSON:').waitFor()
    await start.getByText('Body of each of these statuses').click()
    await start.locator('[id="startWorkflow.answer.4xx.error"]').waitFor()
    await page.goto(`${gateway.url}/docs#nosuch`)
    await page.getByText('This page has nothing named #nosuch').waitFor()
    await page.goto(`${gateway.url}/docs#startWorkflow`)
    await page.getByText('This page has nothing named').waitFor({ state: 'hidden' })
    expect(await findIssues(page)).toEqual([])

    const kept = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    )
    expect(kept).not.toContain(gateway.organization.key)
    await page.reload()
    expect(await start.getByLabel('API key').inputValue()).toBe('')
  })

  test.each([
    ['curl', 'curl', ['--version'], '-c', 'bash'],
    ['Python', 'python3', ['--version'], '-c', 'python3'],
  ])('has samples in %s that do what they say', async (label, command, probe, flag, program) => {
    if (spawnSync(command, probe).status !== 0) return
    const page = await open()
    for (const id of Object.keys(OPERATIONS)) {
      const text = await page.locator(`#${id} .aside figure[data-label="${label}"] code`).textContent()
      const sample = (text ?? '').replaceAll('01890a5d-ac96-774b-bcce-b302099a8057', workflow.id)
      const env = { ...process.env, WORKFLOW_API_KEY: gateway.organization.key }
      const { stdout } = await promisify(execFile)(program, [flag, sample], { env })
      expect([id, stdout]).toEqual([id, expect.stringMatching(/"id":/)])
    }

    // The samples of these guides continue each other.
    const guides = `:is(#first-start, #sessions, #idempotency) figure[data-label="${label}"] code`
    const { body } = await gateway.start(workflow.id, { context: 'A first start' })
    const env = {
      ...process.env,
      WORKFLOW_API_KEY: gateway.organization.key,
      WORKFLOW_ID: workflow.id,
      SESSION_ID: (body as { session_id: string }).session_id,
    }
    const samples = (await mapAll(page, guides, 'textContent')).join('\n')
    const { stdout } = await promisify(execFile)(program, [flag, samples], { env })
    expect(stdout).toContain(gateway.organization.id)
    expect(stdout).not.toContain('"error"')
  })
})
