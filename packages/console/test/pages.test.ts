import { randomUUID } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { findAxeIssues, type Page } from '@workflow-service/testkit/use-browser'
import { fillLong } from './support/fill-long.ts'
import { findIssues, findScrolledSideways } from './support/find-issues.ts'
import { PAGES } from './support/pages.ts'
import { follow, show } from './support/show.ts'
import { useConsole } from './support/use-console.ts'

const { service, open, openFilled } = useConsole()

/** The narrowest phone, and a desktop at 400 % zoom (WCAG 2.2, 1.4.10). */
const NARROW = 320

/** A laptop of 1280 × 800 pixels at 200 % zoom (WCAG 2.2, 1.4.4). */
const ZOOMED = { width: 640, height: 400 }

/** The largest letters that the settings of Chrome offer, in pixels. */
const LARGE = 24

/** A transition that ends within a frame is none for the eye. */
const UNSEEN_MS = 16

describe('every page', () => {
  test('has no axe findings in the dark without data', async () => {
    const { page } = await open(undefined, { colorScheme: 'dark' })
    const findings: Record<string, unknown> = {}
    for (const { name, path } of PAGES.filter(({ needsFilled }) => !needsFilled)) {
      await follow(page, path())
      const found = await findAxeIssues(page)
      if (found.length > 0) findings[name] = found
    }
    expect(findings).toEqual({})
  })

  test('has no axe findings with data, fits 320 pixels, 200 % zoom with forced colours and large letters, and is still with reduced motion', async () => {
    const { page, ...filled } = await openFilled(undefined, { reducedMotion: 'reduce' })
    const findings: Record<string, unknown> = {}
    for (const { name, path } of PAGES) {
      await follow(page, path(filled))
      const found = await inspect(page).catch((error: Error) => [error.message])
      if (found.length > 0) findings[name] = found
    }
    expect(findings).toEqual({})
  })

  test('scrolls nothing sideways at any width with 200 characters without a break in every field', async () => {
    const { owner, page } = await open()
    const findings: Record<string, unknown> = {}
    const inspectWidths = async (name: string) => {
      for (const width of [1280, 800, 375]) {
        await page.setViewportSize({ width, height: 800 })
        const found = await findScrolledSideways(page)
        if (found.length > 0) findings[`${name} at ${width} pixels`] = found
      }
    }
    const body = { id: randomUUID(), name: 'Z'.repeat(200), description: '', scope: 'company_wide' } as const
    await owner.call('createWorkflow', { body })
    await show(page, '/')
    await page.getByRole('link', { name: /^See what “ZZZ/ }).waitFor()
    await inspectWidths('first steps')

    const filled = await fillLong(service, owner)
    const drawers = [
      { name: 'file', path: () => `/workflows/${filled.workflowId}/files?file=${filled.fileId}` },
      { name: 'workflow with warnings', path: () => `/workflows/${filled.warnedId}` },
      { name: 'audit event', path: () => `/audit?event=${filled.eventId}` },
      { name: 'new workflow for a source', path: () => `/workflows/new?source=${'S'.repeat(200)}` },
    ]
    for (const { name, path } of [...PAGES, ...drawers]) {
      await follow(page, path(filled))
      await inspectWidths(name)
    }

    // What opens above a page.
    await page.setViewportSize({ width: NARROW, height: 256 })
    await follow(page, `/deliveries?open=${filled.deliveryId}`)
    // It scrolls with its title, which would leave it no height.
    expect((await page.locator('.dialog-body').boundingBox())?.height).toBeGreaterThan(256)
    await show(page, '/runs')
    await page.getByRole('button', { name: 'Filters' }).click()
    await page.getByRole('combobox', { name: 'Workflow' }).click()
    await page.getByRole('option', { name: 'WWW' }).first().waitFor()
    await inspectWidths('options of a combobox')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Find/ }).fill('VVV')
    await page.getByRole('option', { name: 'VVV' }).first().waitFor()
    await inspectWidths('search')
    expect(findings).toEqual({})
  })
})

/** What is wrong about a page with data: at 1280 and 320 pixels, and zoomed with forced colours. */
async function inspect(page: Page): Promise<string[]> {
  // First, because what moves when a page opens may have ended later.
  const moving = await page.evaluate<string[]>(
    `document.getAnimations()
      .filter((each) => each.effect.getComputedTiming().activeDuration > ${UNSEEN_MS})
      .map((each) => each.effect.target.outerHTML.slice(0, 120))`,
  )
  const issues = await findIssues(page, NARROW)
  const size = page.viewportSize()!
  await page.setViewportSize(ZOOMED)
  await page.emulateMedia({ forcedColors: 'active' })
  const hidden = await page.evaluate<string[]>(
    `[...document.querySelectorAll('td:not(.secondary) button:not([popover] *)')]
      .filter((each) => !each.checkVisibility())
      .map((each) => each.outerHTML)`,
  )
  const zoomed = [...(await findScrolledSideways(page)), ...(await findCutOff(page)), ...(await findUnseenFocus(page))]
  await page.emulateMedia({ forcedColors: 'none' })
  await page.setViewportSize({ width: 1280, height: 800 })
  const large = await withLetters(page, LARGE, async () => await findScrolledSideways(page))
  await page.setViewportSize(size)
  return [
    ...issues,
    ...moving.map((element) => `moves although motion is to be reduced: ${element}`),
    ...hidden.map((element) => `hidden on a card: ${element}`),
    ...zoomed.map((element) => `zoomed with forced colours: ${element}`),
    ...large.map((element) => `with large letters: ${element}`),
  ]
}

/** Sets the size of letters, which is a setting of the browser, while `use` runs. */
async function withLetters<Result>(page: Page, pixels: number, use: () => Promise<Result>): Promise<Result> {
  const session = await page.context().newCDPSession(page)
  const set = async (standard: number) => await session.send('Page.setFontSizes', { fontSizes: { standard } })
  await set(pixels)
  const result = await use()
  await set(16)
  await session.detach()
  return result
}

/** Texts of which a part is neither visible nor can be scrolled to. */
async function findCutOff(page: Page): Promise<string[]> {
  return await page.evaluate<string[]>(`(() => {
    const isCut = (element) => {
      const { clipPath, overflowX, overflowY } = getComputedStyle(element)
      if (clipPath !== 'none' || !element.checkVisibility()) return false
      const hides = (overflow) => overflow === 'hidden' || overflow === 'clip'
      return (
        (hides(overflowX) && element.scrollWidth > element.clientWidth + 1) ||
        (hides(overflowY) && element.scrollHeight > element.clientHeight + 1)
      )
    }
    return [...document.body.querySelectorAll('*')].filter(isCut).map((element) => 'cut off: ' + element.outerHTML.slice(0, 120))
  })()`)
}

/** Controls that have the focus of the keyboard without an outline, outside of the window, or below something else. */
async function findUnseenFocus(page: Page): Promise<string[]> {
  // From now on a focus is one of the keyboard.
  await page.keyboard.press('Tab')
  return await page.evaluate<string[]>(`(() => {
    const flawOf = (element) => {
      if (element.tabIndex < 0 || !element.checkVisibility({ visibilityProperty: true })) return
      element.focus()
      if (document.activeElement !== element) return
      const outlines = [undefined, '::after'].map((part) => getComputedStyle(element, part))
      if (!outlines.some((style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 1)) return 'no outline'
      const { left, right, top, bottom } = element.getBoundingClientRect()
      const shown = document.elementFromPoint((left + right) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2)
      const isShown = shown && (element.contains(shown) || shown.contains(element) || element.closest('tr')?.contains(shown))
      return isShown ? undefined : 'out of sight'
    }
    const controls = [...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex]')]
    // Backwards: a control that is scrolled to at the upper edge can end below the bar there.
    return controls.reverse().flatMap((element) => {
      const flaw = flawOf(element)
      return flaw ? ['focus, ' + flaw + ': ' + element.outerHTML.slice(0, 120)] : []
    })
  })()`)
}

test('on a phone the navigation closes with its page, and the filters of a list are behind one button that counts them', async () => {
  const { page } = await openFilled('/deliveries?outcome=rejected&last=24h', {
    viewport: { width: 375, height: 800 },
  })
  const outcome = page.getByRole('combobox', { name: 'Outcome' })
  await page.getByRole('button', { name: 'Remove the filter Outcome: Rejected' }).waitFor()
  expect(await outcome.isVisible()).toBe(false)
  await page.getByRole('button', { name: 'Open the navigation' }).click()
  await page.getByRole('button', { name: /^Account: / }).click()
  await page.getByRole('menuitem', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Open the navigation', expanded: false }).waitFor()
  await page.goBack()
  await page.getByRole('button', { name: 'Filters (2)', expanded: false }).click()
  await outcome.click()
  await page.getByRole('option', { name: 'Accepted', exact: true }).click()
  await page.getByRole('button', { name: 'Remove the filter Outcome: Accepted' }).waitFor()
  await page.setViewportSize({ width: 1280, height: 800 })
  expect(await page.getByRole('button', { name: 'Filters (2)' }).isVisible()).toBe(false)
})

test('forced colours show which switch is on and which tab is open', async () => {
  const { owner, page, workflowId } = await openFilled(undefined, { forcedColors: 'active', reducedMotion: 'reduce' })
  const look = async (tab: string) => {
    await show(page, `/workflows/${workflowId}/${tab}`)
    const link = page.getByRole('navigation', { name: 'Parts of the workflow' }).getByRole('link', { name: 'Triggers' })
    const activeSwitch = page.getByRole('switch', { name: /^Switched/ })
    return { tab: await link.screenshot(), activeSwitch: await activeSwitch.screenshot() }
  }
  const before = await look('triggers')
  await owner.call('setWorkflowActive', { params: { workflow_id: workflowId }, body: { is_active: false } })
  const after = await look('people')
  expect(before.tab.equals(after.tab)).toBe(false)
  expect(before.activeSwitch.equals(after.activeSwitch)).toBe(false)
})
