import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { buildConsole, CONSOLE_DIST, measureConsole } from '../build.ts'

beforeAll(async () => {
  await buildConsole()
})

test('the built page is small enough to start fast', () => {
  const sizes = measureConsole()
  expect(sizes.scriptsAtStart).toBeLessThanOrEqual(150_000)
  // The pages of a workflow, with the editor of rules.
  expect(sizes.largestPage).toBeLessThanOrEqual(230_000)
  expect(sizes.largestPage).toBeGreaterThan(sizes.scriptsAtStart + 50_000)
  expect(sizes.styles).toBeLessThanOrEqual(12_000)
})

test('what a list needs is one file, which is smaller than several', async () => {
  const manifest = await readFile(join(CONSOLE_DIST, '.manifest.json'), 'utf8')
  const parts = Object.keys(JSON.parse(manifest) as object).filter((name) =>
    /^_(list|data-list|filters|table)-/.test(name),
  )
  expect(parts).toHaveLength(1)
})

test('browsers do not translate the page, which fails once its texts are replaced', async () => {
  expect(await readFile(join(CONSOLE_DIST, 'index.html'), 'utf8')).toMatch(/<html [^>]*translate="no"/)
})

test('a page that does not start names the browsers for which it is built', async () => {
  const config = await readFile(new URL('../vite.config.ts', import.meta.url), 'utf8')
  const targets = [...config.matchAll(/'(chrome|firefox|safari)([\d.]+)'/g)]
  expect(targets).toHaveLength(3)
  const html = (await readFile(join(CONSOLE_DIST, 'index.html'), 'utf8')).toLowerCase()
  for (const [, name, version] of targets) expect(html).toContain(`${name} ${version}`)
})

test('unchanged sources are not built again', async () => {
  expect(await buildConsole()).toBe(false)
})
