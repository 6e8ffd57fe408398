import { expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { useBrowser } from '@workflow-service/testkit/use-browser'
import { startProxy } from './support/start-proxy.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

test('a page loads after the service has closed a spare connection of the browser', async () => {
  await using proxy = await startProxy(service.url)
  const page = await browser.newPage({ baseURL: proxy.url })
  const heading = page.getByRole('heading', { level: 1 })
  await page.goto('/sign-in')
  await heading.waitFor()
  // The connection of a request that is aborted while it opens stays as a spare one.
  await waitUntil(
    async () => {
      await page.evaluate(async () => {
        const aborted = Array.from({ length: 5 }, async (_, index) => {
          const abort = new AbortController()
          setTimeout(() => abort.abort(), index)
          await fetch('/app/setup', { signal: abort.signal }).catch(() => {})
        })
        await Promise.all(aborted)
      })
      return proxy.unused.open > 0
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  )
  await waitUntil(() => proxy.unused.closed > 0, { timeoutMs: 30_000 })
  await page.goto('/sign-in')
  await heading.waitFor()
  expect(await page.getByText('invalid_request').count()).toBe(0)
}, 90_000)
