import { buildConsole, measureConsole } from '@workflow-service/console/build'
import { createSignedInUser } from '@workflow-service/testkit'
import { type Browser, launchChromium, type Page, signedInContext } from '@workflow-service/testkit/launch-chromium'
import type { BenchOptions } from '../bench-options.ts'
import { createCustomer, createWorkflow, type Customer, start } from '../customer.ts'
import { type Service, startEnvironment } from '../environment.ts'
import { type Figure, fixedLimit, median, percentile } from '../figure.ts'
import { seedDeliveries, seedRuns } from '../seed.ts'
import { payloadsPerSecond, type ServicePath, warmUp, withServicePath } from '../service-path.ts'

const REQUESTS = 200
const SMALL_TABLE = 1_000
const COLD_STARTS = 7
const CLICKS = 60
const STARTS = 40

/** Measures the application: the size of its page, the page in a real browser, and its lists in large tables. */
export async function measureApp(options: BenchOptions): Promise<Figure[]> {
  await buildConsole()
  return [...measureSizes(), ...(await measurePage(options)), ...(await measureLists(options))]
}

function measureSizes(): Figure[] {
  const { scriptsAtStart, largestLaterScript, styles } = measureConsole()
  return [
    limited('JavaScript at start, gzip', scriptsAtStart / 1_000, 'kB', 170),
    limited('largest later chunk, gzip', largestLaterScript / 1_000, 'kB', 25),
    limited('CSS, gzip', styles / 1_000, 'kB', 12),
  ]
}

function limited(name: string, value: number, unit: string, limit: number): Figure {
  return { name: `page, ${name}`, value, unit, ...fixedLimit(limit) }
}

/** A page of the application in a browser, signed in as an owner. */
interface Visit {
  readonly path: ServicePath
  readonly app: Service
  readonly open: () => Promise<Page>
}

async function measurePage(options: BenchOptions): Promise<Figure[]> {
  return await withServicePath(options, async (path) => {
    const { environment, customer, dispatcher } = path
    const app = await environment.startApp(dispatcher.url)
    const { cookie } = await createSignedInUser(environment.client, customer.organizationId)
    const browser = await launchChromium({ log: options.logProgress })
    try {
      const open = async (): Promise<Page> => await openPage(browser, app, cookie)
      const visit = { path, app, open }
      await warmUp(path, options)
      options.logProgress('page: ready, cold')
      const figures = [limited('ready, cold', await readyMs(visit), 'ms', 1_000)]
      figures.push(limited('ready, cold, CPU 4 times slower', await readyMs(visit, 4), 'ms', 2_500))
      options.logProgress('page: clicks')
      figures.push(limited('click → paint, p95', await clickMs(visit), 'ms', 100))
      options.logProgress('page: start → row')
      figures.push(limited('commit → row, idle, p95', percentile(await rowDelaysMs(visit), 0.95), 'ms', 600))
      const load = payloadsPerSecond(path, path.gateway.url, Math.max(options.seconds * 4, 20))
      const underLoad = percentile(await rowDelaysMs(visit), 0.95)
      figures.push(limited(`commit → row at ${Math.round(await load)} runs/s, p95`, underLoad, 'ms', 1_500))
      return figures
    } finally {
      await browser.close()
    }
  })
}

async function openPage(browser: Browser, { url }: Service, cookie: { name: string; value: string }): Promise<Page> {
  const context = await browser.newContext({ ...signedInContext(url, cookie), viewport: { width: 1280, height: 800 } })
  return await context.newPage()
}

/** Median time from the navigation until the overview shows its heading, with an empty cache. */
async function readyMs({ open }: Visit, slowdown = 1): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < COLD_STARTS; round += 1) {
    const page = await open()
    const devTools = await page.context().newCDPSession(page)
    await devTools.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
    await page.goto('/')
    await page.getByRole('heading', { level: 1 }).waitFor()
    times.push(await page.evaluate<number>('performance.now()'))
    await page.context().close()
  }
  return median(times)
}

/** Collects the time from each click until the next frame is painted, as the Event Timing API rounds it to 8 ms. */
const OBSERVE_CLICKS = `
  window.clickMs = []
  new PerformanceObserver((list) => {
    for (const { name, duration } of list.getEntries()) if (name === 'click') window.clickMs.push(duration)
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })`

/** Walks through the pages of the navigation. A click that takes less than 16 ms is not reported and counts as 16. */
async function clickMs({ open }: Visit): Promise<number> {
  const page = await open()
  await page.addInitScript(OBSERVE_CLICKS)
  await page.goto('/')
  const links = page.getByRole('navigation').first().getByRole('link')
  await links.first().waitFor()
  const count = await links.count()
  for (let click = 0; click < CLICKS; click += 1) {
    await links.nth((click + 1) % count).click()
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))')
  }
  const reported = await page.evaluate<number[]>('window.clickMs')
  await page.context().close()
  return percentile([...reported, ...Array.from({ length: Math.max(0, CLICKS - reported.length) }, () => 16)], 0.95)
}

/** Notes when the text of the page first announces a new row. */
const OBSERVE_ROWS = `
  window.announcedAt = undefined
  const isAnnounced = () => [...document.querySelectorAll('main button')].some((button) => /\\bnew\\b/i.test(button.textContent))
  new MutationObserver(() => {
    if (window.announcedAt === undefined && isAnnounced()) window.announcedAt = performance.timeOrigin + performance.now()
  }).observe(document, { subtree: true, childList: true, characterData: true })`

/**
 * Times from the answer to a start until the list of its workflow's runs announces it. The workflow is another one than that
 * of the load.
 */
async function rowDelaysMs({ path, open }: Visit): Promise<number[]> {
  const { environment, gateway, customer } = path
  const quiet: Customer = {
    ...customer,
    workflowId: await createWorkflow(environment.client, customer.organizationId, 'Does nothing.'),
  }
  const page = await open()
  await page.addInitScript(OBSERVE_ROWS)
  // An empty list shows its first rows at once instead of announcing them.
  await start(gateway, quiet, 'the first')
  await page.goto(`/workflows/${quiet.workflowId}/runs`)
  await page.getByRole('row').nth(1).waitFor()
  const delays: number[] = []
  for (let number = 0; number < STARTS; number += 1) {
    await page.evaluate('window.announcedAt = undefined')
    await start(gateway, quiet, `start ${number}`)
    const committedAt = performance.timeOrigin + performance.now()
    await page.getByRole('button', { name: /\bnew\b/i }).waitFor()
    delays.push((await page.evaluate<number>('window.announcedAt')) - committedAt)
    await page.getByRole('button', { name: /\bnew\b/i }).click()
    await page.getByRole('button', { name: /\bnew\b/i }).waitFor({ state: 'detached' })
  }
  await page.context().close()
  return delays
}

/** Measures the response times of lists in large tables and in small ones. */
async function measureLists(options: BenchOptions): Promise<Figure[]> {
  const small = await measureTables(options, SMALL_TABLE)
  const large = await measureTables(options, options.largeTable)
  return [...large].map(([name, value]) => ({
    name: `application, ${name}, ${options.largeTable.toLocaleString('en')} rows`,
    value,
    unit: 'ms',
    baseline: { name: 'at 1,000', value: small.get(name) ?? Number.NaN },
    target: { kind: 'at most', ratio: 1.5 },
  }))
}

async function measureTables(options: BenchOptions, rows: number): Promise<Map<string, number>> {
  const environment = await startEnvironment(options)
  try {
    options.logProgress(`application: inserting ${rows.toLocaleString('en')} deliveries and runs`)
    const endpoint = await environment.startScript('./endpoint-server.ts')
    const dispatcher = await environment.startDispatcher()
    const app = await environment.startApp(dispatcher.url)
    const { organizationId, sourceId, workflowId } = await createCustomer(environment, dispatcher, endpoint.url)
    await seedDeliveries(environment.client, organizationId, sourceId, rows)
    await seedRuns(environment.client, organizationId, workflowId, rows)
    const { cookie } = await createSignedInUser(environment.client, organizationId)
    const measured = new Map<string, number>()
    for (const [name, path] of [
      ['log', `/app/webhook-sources/${sourceId}/deliveries`],
      ['log filtered by outcome', `/app/webhook-sources/${sourceId}/deliveries?outcome=rejected`],
      ['run list', '/app/runs'],
      ['run list of failures', '/app/runs?status=failed'],
      ['run list of a workflow', `/app/runs?workflow_id=${workflowId}`],
    ] as const) {
      const times: number[] = []
      for (let round = 0; round < options.rounds; round += 1) {
        times.push(await responseMs(app.url + path, `${cookie.name}=${cookie.value}`))
      }
      measured.set(name, median(times))
    }
    return measured
  } finally {
    await environment.close()
  }
}

async function responseMs(url: string, cookie: string): Promise<number> {
  const times: number[] = []
  for (let request = 0; request < REQUESTS; request += 1) {
    const startedAt = performance.now()
    const response = await fetch(url, { headers: { cookie } })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`)
    times.push(performance.now() - startedAt)
  }
  return median(times)
}
