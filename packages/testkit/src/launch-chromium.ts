import { findChromium } from '@workflow-service/dev-servers'
import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core'

export type { Browser, BrowserContext, BrowserContextOptions, Locator, Page, Request } from 'playwright-core'

/** Keep a browser that tests pages on loopback from contacting any other host. */
const OFFLINE_FLAGS = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
]

/** Scripts run for a moment: without optimizing them, test files take about 5 % less processor time. */
const CHEAP_FLAGS = ['--disable-gpu', '--js-flags=--no-opt --no-maglev']

/**
 * Starts a headless Chromium, which takes about 0.5 s. It ends with this process, also when that is killed.
 * Rejects, with what to do, when there is none and it cannot be installed.
 */
export async function launchChromium(
  options: { log?: (line: string) => void; args?: string[] } = {},
): Promise<Browser> {
  return await chromium.launch({
    executablePath: await findChromium(options.log),
    // Containers give /dev/shm 64 MB, which is too little for a page.
    args: [...OFFLINE_FLAGS, ...CHEAP_FLAGS, '--disable-dev-shm-usage', ...(options.args ?? [])],
    chromiumSandbox: process.getuid?.() !== 0,
  })
}

/** Options of a context in which the person with this cookie is signed in to the application on loopback. */
export function signedInContext(baseURL: string, cookie: { name: string; value: string }): BrowserContextOptions {
  const { hostname: domain } = new URL(baseURL)
  const attributes = { domain, path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' as const }
  return { baseURL, storageState: { origins: [], cookies: [{ ...cookie, ...attributes }] } }
}
