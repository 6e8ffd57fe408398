import { createDatabase, migrate } from '@workflow-service/database'
import { startPostgres } from '@workflow-service/testkit'
import { launchChromium } from '@workflow-service/testkit/launch-chromium'
import { startConsole } from './start-console.ts'

/** Starts the console on a new PostgreSQL, and a browser, for a program; they end with its disposal. */
export async function openConsole(name: string, args: string[] = []) {
  const stack = new AsyncDisposableStack()
  const postgres = await startPostgres()
  stack.defer(postgres.stop)
  await migrate({ databaseUrl: postgres.url })
  const db = createDatabase({ url: postgres.url, applicationName: name })
  stack.defer(async () => await db.close())
  const console = await startConsole(db, postgres.url)
  stack.defer(console.stop)
  const browser = await launchChromium({ log: print, args })
  stack.defer(async () => await browser.close())
  return { db, console, browser, [Symbol.asyncDispose]: async () => await stack.disposeAsync() }
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
