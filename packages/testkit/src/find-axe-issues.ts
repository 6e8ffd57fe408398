import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

/** Colours are mixed while a transition runs. One that repeats forever does not end. */
const END_OF_TRANSITIONS = `Promise.allSettled(document.getAnimations()
  .filter((each) => each.playState === 'running' && each.effect.getComputedTiming().endTime < Infinity)
  .map((each) => each.finished))`

let axeSource: string | undefined

/**
 * Checks the accessibility of the page with axe: WCAG 2.2 A and AA, and its best practices.
 * Takes about 0.2 s. Resolves to one line per finding, so `expect(await findAxeIssues(page)).toEqual([])`.
 */
export async function findAxeIssues(page: Page): Promise<string[]> {
  axeSource ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  for (const frame of page.frames()) {
    // Once per document: reading 600 kB of source takes as long as a check.
    if (!(await frame.evaluate<boolean>(`typeof axe === 'object'`))) await frame.evaluate(axeSource)
  }
  const violations = await page.evaluate<AxeResults['violations']>(
    `${END_OF_TRANSITIONS}.then(() => axe.run(document, { resultTypes: ['violations'] })).then(({ violations }) => violations)`,
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) =>
        `${id}: ${help}: ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ')}`,
    ),
  )
}
