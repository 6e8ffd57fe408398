import { beforeAll, expect, test } from '@jest/globals'
import { buildConsole, measureConsole } from '../build.ts'

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

test('unchanged sources are not built again', async () => {
  expect(await buildConsole()).toBe(false)
})
