import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { findAxeIssues, type Page, useBrowser } from '@workflow-service/testkit/use-browser'
import { fill } from './support/fill.ts'
import { NOTHING_FILLED, PAGES } from './support/pages.ts'
import { show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const service = useConsole()
const browser = useBrowser()

/** The narrowest phone, and a desktop at 400 % zoom (WCAG 2.2, 1.4.10). */
const NARROW = 320

/** A transition that ends within a frame is none for the eye. */
const UNSEEN_MS = 16

describe('every page', () => {
  test('is in the list of this test', () => {
    const router = readFileSync(join(import.meta.dirname, '../src/router.tsx'), 'utf8')
    const routes = [...router.matchAll(/lazyRouteComponent\(\w+, '(\w+)'\)/g)].map(([, component]) => component)
    const pages = routes.filter((component) => component !== 'WorkflowLayout')
    expect(new Set(PAGES.map(({ component }) => component))).toEqual(new Set(pages))
  })

  test.each(['without data', 'with data'])(
    'has no axe findings, contrasts in the dark, fits 320 pixels and is still with reduced motion, %s',
    async (state) => {
      const isFilled = state === 'with data'
      const owner = await service.signIn()
      const filled = isFilled ? await fill(service, owner) : NOTHING_FILLED
      const page = await browser.newPage(owner.context)
      const findings: Record<string, unknown> = {}
      for (const { name, path } of PAGES.filter(({ needsFilled = false }) => isFilled || !needsFilled)) {
        const found = await inspect(page, path(filled)).catch((error: Error) => [error.message])
        if (found.length > 0) findings[name] = found
      }
      expect(findings).toEqual({})
    },
    180_000,
  )
})

async function inspect(page: Page, path: string): Promise<string[]> {
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'no-preference' })
  await show(page, path)
  const light = await findAxeIssues(page)
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  const dark = await findAxeIssues(page, { rules: ['color-contrast'] })
  const moving = await page.evaluate<number>(
    `document.getAnimations().filter((each) => each.effect.getComputedTiming().activeDuration > ${UNSEEN_MS}).length`,
  )
  const cutOff = await findCutOff(page)
  return [
    ...light,
    ...dark.map((issue) => `in the dark: ${issue}`),
    ...(moving > 0 ? [`${moving} animations although motion is to be reduced`] : []),
    ...cutOff.map((element) => `wider than ${NARROW} pixels: ${element}`),
  ]
}

/** Elements that make a narrow page scroll sideways. Tables and code may scroll in a box of their own. */
async function findCutOff(page: Page): Promise<string[]> {
  await page.setViewportSize({ width: NARROW, height: 640 })
  return await page.evaluate<string[]>(`(() => {
    if (document.documentElement.scrollWidth <= ${NARROW}) return []
    const isClipped = (element) => {
      for (let box = element.parentElement; box; box = box.parentElement) {
        if (box !== document.body && getComputedStyle(box).overflowX !== 'visible') return true
      }
      return false
    }
    return [...document.body.querySelectorAll('*')]
      .filter((element) => element.getBoundingClientRect().right > ${NARROW} + 1 && !isClipped(element))
      .map((element) => element.outerHTML.slice(0, 120))
      .slice(0, 5)
  })()`)
}
