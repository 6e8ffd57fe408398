// pnpm screenshots [FOLDER] [NAME...]: writes a picture of every page, or of those with these names, for people to look
// at: desktop, tablet and phone, light and dark, empty, filled, and with long texts.
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createDatabase, migrate } from '@workflow-service/database'
import { startPostgres } from '@workflow-service/testkit'
import { launchChromium } from '@workflow-service/testkit/launch-chromium'
import { fill } from './support/fill.ts'
import { fillLong } from './support/fill-long.ts'
import { NOTHING_FILLED, PAGES } from './support/pages.ts'
import { show } from './support/show.ts'
import { type SignedIn, startConsole } from './support/start-console.ts'

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../screenshots'))
const names = process.argv.slice(3)
const SIZES = {
  desktop: { width: 1280, height: 800 },
  tablet: { width: 820, height: 1_180 },
  phone: { width: 375, height: 812 },
}

await mkdir(folder, { recursive: true })
await using stack = new AsyncDisposableStack()
const postgres = await startPostgres()
stack.defer(postgres.stop)
await migrate({ databaseUrl: postgres.url })
const db = createDatabase({ url: postgres.url, applicationName: 'screenshots' })
stack.defer(async () => await db.close())
const console = await startConsole(db, postgres.url)
stack.defer(console.stop)
const browser = await launchChromium({ log: print })
stack.defer(async () => await browser.close())

const owner = await console.signIn()
const states = [
  ['empty', owner, async () => NOTHING_FILLED],
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
      for (const { name, path } of pages) {
        try {
          await show(page, path(filled))
        } catch (error) {
          print(`${name}, ${state}: ${String(error).split('\n')[0]}`)
        }
        await page.screenshot({
          path: join(folder, `${name}-${state}-${size}-${colorScheme}.png`),
          fullPage: true,
          animations: 'disabled',
        })
        count += 1
      }
      await context.close()
    }
  }
}
print(`${count} pictures in ${folder}`)

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
