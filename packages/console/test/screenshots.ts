// pnpm screenshots [FOLDER] [NAME...]: writes a picture of every page, or of those with these names, for people to look
// at: desktop, tablet and phone, light and dark, empty, filled, and with long texts. Lists those that changed since the
// last pictures of the folder, which are kept in its folder `before`.
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createDatabase, migrate } from '@workflow-service/database'
import { startPostgres, waitUntil } from '@workflow-service/testkit'
import { launchChromium, type Page, type Request } from '@workflow-service/testkit/launch-chromium'
import { fill } from './support/fill.ts'
import { fillLong } from './support/fill-long.ts'
import { PAGES } from './support/pages.ts'
import { show } from './support/show.ts'
import { type SignedIn, startConsole } from './support/start-console.ts'

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../screenshots'))
const names = process.argv.slice(3)
const SIZES = {
  desktop: { width: 1280, height: 800 },
  tablet: { width: 820, height: 1_180 },
  phone: { width: 375, height: 812 },
}

/** Writes the same in place of what differs between two runs of this command: times, ids, ports, keys, and a color. */
const FREEZE = `(() => {
  const freeze = (text) => text
    .replaceAll(/(?<![0-9a-f-])[0-9a-f]{8}[0-9a-f-]{0,28}(?![0-9a-f])|wfk_[\\w-]+/g, 'id')
    .replaceAll(/\\d+(\\.\\d)? m?s(?!\\w)/g, '0 ms')
    .replaceAll(/(?<!\\d)\\d{1,6}(?!\\d)/g, '0')
    .replaceAll(/[A-Z][a-z]{2} (?=0, 0)|[AP]M/g, 'PM')
  document.querySelector('.avatar')?.removeAttribute('style')
  for (const each of document.querySelectorAll('time')) each.textContent = 'a time'
  for (const each of document.querySelectorAll('input, textarea')) each.value = freeze(each.value)
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) texts.currentNode.data = freeze(texts.currentNode.data)
})()`

/** Waits until every request of the page is answered, but for its stream of events, and its fonts are loaded. */
async function untilRead(page: Page, pending: ReadonlySet<Request>): Promise<void> {
  do {
    await waitUntil(async () => pending.size === 0)
    // What was answered last may ask for more.
    await page.evaluate('document.fonts.ready.then(() => new Promise((done) => setTimeout(done, 50)))')
  } while (pending.size > 0)
}

const hashFile = join(folder, 'hashes.json')
const hashes = JSON.parse(await readFile(hashFile, 'utf8').catch(() => '{}')) as Record<string, string>
const changed: string[] = []
await rm(join(folder, 'before'), { recursive: true, force: true })
await mkdir(join(folder, 'before'), { recursive: true })
/** Keeps the last picture if it looked different, apart from times and ids. */
async function compare(page: Page, file: string): Promise<void> {
  await page.evaluate(FREEZE)
  const picture = await page.screenshot({ fullPage: true, animations: 'disabled' })
  const hash = createHash('sha256').update(picture).digest('hex')
  const { [file]: last } = hashes
  hashes[file] = hash
  if (last === hash) return
  changed.push(last ? file : `${file} (new)`)
  await rename(join(folder, file), join(folder, 'before', file)).catch(() => {})
}

const print = (line: string): void => void process.stdout.write(`${line}\n`)

await using stack = new AsyncDisposableStack()
const postgres = await startPostgres()
stack.defer(postgres.stop)
await migrate({ databaseUrl: postgres.url })
const db = createDatabase({ url: postgres.url, applicationName: 'screenshots' })
stack.defer(async () => await db.close())
const console = await startConsole(db, postgres.url)
stack.defer(console.stop)
// The antialiasing of corners would differ by one level between two runs.
const args = ['--disable-partial-raster', '--num-raster-threads=1']
const browser = stack.adopt(await launchChromium({ log: print, args }), (started) => started.close())

const owner = await console.signIn()
const states = [
  ['empty', owner, async () => undefined],
  ['filled', owner, async () => await fill(console, owner)],
  ['long', await console.signIn(), async (other: SignedIn) => await fillLong(console, other)],
] as const
let count = 0
for (const [state, person, prepare] of states) {
  const filled = await prepare(person)
  const pages = PAGES.filter(
    ({ name, needsFilled, isPublic }) =>
      (names.length === 0 || names.includes(name)) && (state === 'empty' ? !needsFilled : !isPublic),
  )
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await browser.newContext({ ...person.context, viewport, colorScheme })
      const page = await context.newPage()
      const pending = new Set<Request>()
      page.on('request', (request) => request.resourceType() === 'eventsource' || pending.add(request))
      const onEnd = (request: Request) => pending.delete(request)
      page.on('requestfinished', onEnd).on('requestfailed', onEnd)
      for (const { name, path } of pages) {
        try {
          await show(page, path(filled))
          await untilRead(page, pending)
        } catch (error) {
          print(`${name}, ${state}: ${String(error).split('\n')[0]}`)
        }
        const file = `${name}-${state}-${size}-${colorScheme}.png`
        const picture = await page.screenshot({ fullPage: true, animations: 'disabled' })
        await compare(page, file)
        await writeFile(join(folder, file), picture)
        count += 1
      }
      await context.close()
    }
  }
}
await writeFile(hashFile, JSON.stringify(hashes))
for (const file of changed) print(`changed: ${file}`)
print(`${count} pictures in ${folder}, ${changed.length} changed`)
