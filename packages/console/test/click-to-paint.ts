// node packages/console/test/click-to-paint.ts: measures how long clicks and keys take until their next paint, on the
// main pages with the deliveries of fill-volume.ts, as Chromium reports it (Event Timing, in steps of 8 ms).
import type { Page } from '@workflow-service/testkit/launch-chromium'
import { fillVolume } from './support/fill-volume.ts'
import { settle, show } from './support/show.ts'
import { openConsole, print } from './support/open-console.ts'

const ROUNDS = Number(process.argv[2] ?? 5)
/** Longer than an object of 60 kB, which a page colors as JSON. */
const LARGE = { items: Array.from({ length: 1_500 }, (_, index) => ({ sku: `S-${index}`, count: index })) }

await using opened = await openConsole('click-to-paint')
const { db, console: service, browser } = opened
const owner = await service.signIn()
await fillVolume(service, owner)
await db.pool.query(
  `UPDATE deliveries SET request_body = $1 WHERE id = (SELECT id FROM deliveries WHERE status = 422 LIMIT 1)`,
  [JSON.stringify(LARGE)],
)
const context = await browser.newContext({ ...owner.context, viewport: { width: 1280, height: 900 } })
await context.addInitScript(`
  window.interactions = []
  new PerformanceObserver((list) => {
    for (const { name, duration, interactionId } of list.getEntries())
      if (interactionId > 0) window.interactions.push({ name, duration })
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })`)
const page = await context.newPage()

const link = async (name: string) =>
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
const firstRow = (at: Page) => at.getByRole('rowheader').first().getByRole('link')
/** Steps as people take them: each ends when its page has read everything. */
const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
  'open Runs': () => link('Runs'),
  'open a run': () => firstRow(page).click(),
  'open Deliveries': () => link('Deliveries'),
  'show 200 older ones': async () => {
    for (let pages = 0; pages < 8; pages += 1) {
      await page.getByRole('button', { name: 'Older', exact: true }).click()
      await settle(page)
    }
  },
  'open a delivery beside 200 others': () => firstRow(page).click(),
  'next delivery': () => page.keyboard.press('j'),
  'close it': () => page.keyboard.press('Escape'),
  'filter by status': () => page.getByRole('combobox', { name: 'Status' }).selectOption('422'),
  'open a payload of 60 kB': () => firstRow(page).click(),
  'close the payload': () => page.keyboard.press('Escape'),
  'search by keys': async () => {
    await page.keyboard.press('Control+k')
    await page.keyboard.type('order_id', { delay: 40 })
    await page.keyboard.press('Escape')
  },
  'open Overview': () => link('Overview'),
  'preview 173 resends': () => page.getByRole('button', { name: 'Send again: Order intake answered 500' }).click(),
  'close the preview': () => page.keyboard.press('Escape'),
  'open Usage': () => link('Usage'),
  'open Sources': () => link('Webhook sources'),
  'open a source': () => firstRow(page).click(),
  'type into its form': () => page.getByRole('textbox', { name: 'Name' }).pressSequentially('abc', { delay: 40 }),
  'undo that': () => page.getByRole('button', { name: 'Revert' }).click(),
  'open Workflows': () => link('Workflows'),
  'open a workflow': () => firstRow(page).click(),
  'type its task': () => page.getByLabel('Task').pressSequentially(' and Billing', { delay: 40 }),
}

const durations: Record<string, number[]> = {}
for (let round = 0; round < ROUNDS; round += 1) {
  await show(page, '/')
  for (const [name, step] of Object.entries(STEPS)) {
    await page.evaluate('interactions.length = 0')
    await step().catch((error: unknown) => print(`${name}: ${String(error).split('\n')[0]}`))
    await settle(page)
    // The observer is called after the paint.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))')
    const entries = await page.evaluate<{ duration: number }[]>('interactions')
    ;(durations[name] ??= []).push(Math.max(16, ...entries.map(({ duration }) => duration)))
  }
}
const quantile = (list: readonly number[], of: number) =>
  String(list.toSorted((a, b) => a - b)[Math.ceil(list.length * of) - 1]).padStart(5)
const describe = (name: string, list: readonly number[]) =>
  print(`median ${quantile(list, 0.5)} ms, p95 ${quantile(list, 0.95)} ms  ${name}`)
for (const [name, list] of Object.entries(durations)) describe(name, list)
describe(`all ${Object.values(durations).flat().length} steps`, Object.values(durations).flat())
