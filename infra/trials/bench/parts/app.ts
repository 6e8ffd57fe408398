import { setTimeout as sleep } from 'node:timers/promises'
import { buildConsole, measureConsole } from '@workflow-service/console/build'
import { createDatabase, type Database, indexForSearch } from '@workflow-service/database'
import { createSignedInUser } from '@workflow-service/testkit'
import { launchChromium, type Page as BrowserPage, signedInContext } from '@workflow-service/testkit/launch-chromium'
import { createCustomer, createWorkflow, type Customer, startWorkflow } from '../../shared/customers.ts'
import { median, percentile } from '../../shared/figures.ts'
import { cpuMs } from '../../shared/process-usage.ts'
import { seedDeliveries, seedRuns } from '../../shared/seed.ts'
import { readNumber, type Service, startSystem, type System } from '../../shared/system.ts'
import { comparePages, type Page, pagesOf } from '../compare-pages.ts'
import { type BenchOptions, compare, type Figure, limit } from '../figure.ts'
import {
  payloadsPerSecond,
  risePerRun,
  runsPerSecond,
  type ServicePath,
  startServicePath,
  warmUp,
} from '../service-path.ts'

const MAX_SEARCH_MS = 50
const COLD_STARTS = 7
const CLICKS = 60
const STARTS = 40

/** Measures the application: the size of its page, the page in a real browser, and its lists in large tables. */
export async function measureApp(options: BenchOptions): Promise<Figure[]> {
  await buildConsole()
  return [
    ...measureSizes(),
    ...(await measurePage(options)),
    ...(await compareTables(options, 'application', applicationPages)),
  ]
}

function measureSizes(): Figure[] {
  const { scriptsAtStart, largestPage, styles } = measureConsole()
  return [
    limit('page, JavaScript at start, gzip', scriptsAtStart / 1_000, 'kB', 150),
    limit('page, JavaScript of the largest page, gzip', largestPage / 1_000, 'kB', 230),
    limit('page, CSS, gzip', styles / 1_000, 'kB', 12),
  ]
}

/** A page of the application in a browser, signed in as an owner. */
interface Visit {
  readonly path: ServicePath
  readonly open: () => Promise<BrowserPage>
}

async function measurePage(options: BenchOptions): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const path = stack.use(await startServicePath(options))
  const app = await path.start('app')
  const { cookie } = await createSignedInUser(path.pool, path.customer.organizationId)
  const browser = stack.adopt(await launchChromium({ log: options.log }), (started) => started.close())
  const viewport = { width: 1280, height: 800 }
  const open = async (): Promise<BrowserPage> =>
    await (await browser.newContext({ ...signedInContext(app.url, cookie), viewport })).newPage()
  const visit = { path, open }
  await warmUp(path, options)
  options.log('page: ready, cold')
  const figures = [limit('page, ready, cold', await readyMs(visit), 'ms', 1_000)]
  figures.push(limit('page, ready, cold, CPU 4 times slower', await readyMs(visit, 4), 'ms', 2_500))
  options.log('page: clicks')
  figures.push(limit('page, click → paint, p95', await clickMs(visit), 'ms', 100))
  options.log('page: start → row')
  figures.push(limit('page, commit → row, idle, p95', percentile(await rowDelaysMs(visit), 0.95), 'ms', 600))
  const load = payloadsPerSecond(path, path.gateway.url, Math.max(options.seconds * 4, 20))
  const underLoad = percentile(await rowDelaysMs(visit), 0.95)
  figures.push(limit(`page, commit → row at ${Math.round(await load)} runs/s, p95`, underLoad, 'ms', 1_500))
  return [...figures, ...(await measureFilling(path, app, options))]
}

/** The interval of the application's timer that fills the search index. */
const FILLING_SECONDS = 10
/** The age at which a run is added to the search index. */
const SETTLED_SECONDS = 30

/**
 * Measures runs while the application fills the search index with as many, those of 30 to 40 s ago, and while it is
 * stopped.
 */
async function measureFilling(path: ServicePath, app: Service, { rounds, log }: BenchOptions): Promise<Figure[]> {
  log('runs while the search index is filled')
  const query = `SELECT coalesce(sum(cardinality(ids)), 0)::integer AS value FROM search_chunks WHERE kind = 'runs'`
  const read = async () => ({
    cpu: Object.values(await path.readCpu()).reduce((sum, ms) => sum + ms, 0),
    appCpu: await cpuMs(app.process.pid),
    indexed: await readNumber(path.pool, query),
  })
  const measure = async () => {
    let rate = 0
    const rises = await risePerRun(read, async () => {
      rate = await runsPerSecond(path, FILLING_SECONDS)
      return rate * FILLING_SECONDS
    })
    return { ...rises, rate, indexed: rises.indexed * rate }
  }
  type Measured = Awaited<ReturnType<typeof measure>>
  const db = openDatabase(path)
  const filling: Measured[] = []
  const idle: Measured[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (app.pause(); !(await indexForSearch(db)); app.pause()) {
      // It was stopped while it filled the index.
      app.resume()
      await sleep(100)
    }
    idle.push(await measure())
    await indexForSearch(db)
    await sleep(SETTLED_SECONDS * 1_000)
    app.resume()
    filling.push(await measure())
  }
  await db.close()
  const during = (key: keyof Measured): number => median(filling.map((each) => each[key]))
  const without = (key: keyof Measured): number => median(idle.map((each) => each[key]))
  const other = 'while it is not'
  const name = 'while the search index is filled'
  return [
    compare(`runs completed ${name}`, during('rate'), '/s', [other, without('rate')]),
    compare(`CPU per run, five processes, ${name}`, during('cpu'), 'ms', [other, without('cpu')]),
    compare('runs added to the search index meanwhile', during('indexed'), '/s', ['runs completed', during('rate')]),
    compare('CPU of the application for it, per run', during('appCpu'), 'ms', ['CPU per run', without('cpu')]),
  ]
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
 * Times from the response to a start until the list of its workflow's runs announces it. The workflow is another one
 * than that of the load.
 */
async function rowDelaysMs({ path, open }: Visit): Promise<number[]> {
  const { gateway, customer } = path
  const workflowId = await createWorkflow(path, customer, 'Does nothing.')
  const start = async (text: string) => await startWorkflow(gateway.url, { ...customer, workflowId }, text)
  const page = await open()
  await page.addInitScript(OBSERVE_ROWS)
  // An empty list shows its first rows at once instead of announcing them.
  await start('the first')
  await page.goto(`/workflows/${workflowId}/runs`)
  await page.getByRole('row').nth(1).waitFor()
  const delays: number[] = []
  for (let number = 0; number < STARTS; number += 1) {
    await page.evaluate('window.announcedAt = undefined')
    await start(`start ${number}`)
    const committedAt = performance.timeOrigin + performance.now()
    await page.getByRole('button', { name: /\bnew\b/i }).waitFor()
    delays.push((await page.evaluate<number>('window.announcedAt')) - committedAt)
    await page.getByRole('button', { name: /\bnew\b/i }).click()
    await page.getByRole('button', { name: /\bnew\b/i }).waitFor({ state: 'detached' })
  }
  await page.context().close()
  return delays
}

/** Measures the response time of a page of the delivery log, in a large log and in a small one. */
export async function measureDeliveryLog(options: BenchOptions): Promise<Figure[]> {
  return await compareTables(options, 'delivery log', async (system, { organizationId, sourceId }) => {
    const deliveries = `/internal/organizations/${organizationId}/webhook-sources/${sourceId}/deliveries`
    const page = pagesOf(system.internalUrl(), system.internalHeaders)
    return [
      page('first page', `${deliveries}?limit=25`),
      page('filtered by outcome', `${deliveries}?limit=25&outcome=rejected`),
    ]
  })
}

async function applicationPages(system: System, { organizationId, sourceId, workflowId }: Customer): Promise<Page[]> {
  // The application would do it, too, beside what is measured.
  const db = openDatabase(system)
  await indexForSearch(db)
  await db.close()
  const { rows } = await system.pool.query<{ id: string; order: string }>(
    `SELECT id, request_body->>'order_id' AS order FROM deliveries WHERE source_id = $1 ORDER BY created_at OFFSET 300 LIMIT 1`,
    [sourceId],
  )
  const { id, order } = rows[0]!
  const app = await system.start('app')
  const { headers } = await createSignedInUser(system.pool, organizationId)
  const page = pagesOf(app.url, headers)
  const search = (name: string, text: string, limitMs = MAX_SEARCH_MS) =>
    page(`search of ${name}`, `/app/deliveries?search=${text}`, limitMs)
  return [
    page('log', `/app/deliveries?source_id=${sourceId}`),
    page('log filtered by outcome', `/app/deliveries?source_id=${sourceId}&outcome=rejected`),
    page('run list', '/app/runs'),
    page('run list of failures', '/app/runs?status=failed'),
    page('run list of a workflow', `/app/runs?workflow_id=${workflowId}`),
    search('a word of each delivery', 'customer'),
    search('an order number', order),
    search('the last 8 characters of an id', id.slice(-8)),
    search('a word of none', 'nowhere'),
    search('a word of 1 in 5,000', 'name17', 300),
    page('run search of an order number', `/app/runs?search=${order}`, MAX_SEARCH_MS),
  ]
}

function openDatabase({ postgres }: Pick<System, 'postgres'>): Database {
  return createDatabase({ url: postgres.url, applicationName: 'trial', maxConnections: 2 })
}

/** Measures the response times of pages in large tables of runs and deliveries, and in small ones. */
async function compareTables(
  options: BenchOptions,
  name: string,
  open: (system: System, customer: Customer) => Promise<Page[]>,
): Promise<Figure[]> {
  return await comparePages(options, { name, sizes: [options.largeTable] }, async (size) => {
    const system = await startSystem(options)
    await system.start('dispatcher')
    const customer = await createCustomer(system)
    await seedRuns(system, customer, size)
    await seedDeliveries(system, customer, size)
    return { system, pages: await open(system, customer) }
  })
}
