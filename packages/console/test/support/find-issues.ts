import { findAxeIssues, type Page } from '@workflow-service/testkit/use-browser'

/**
 * What is wrong about the page or dialog that is open: what axe finds on a desktop, and on a phone in the dark, and
 * what scrolls sideways at both widths.
 */
export async function findIssues(page: Page, width = 375): Promise<string[]> {
  const size = page.viewportSize()!
  await page.setViewportSize({ width: 1280, height: 800 })
  const found = [...(await findAxeIssues(page)), ...(await findScrolledSideways(page))]
  await page.setViewportSize({ width, height: 800 })
  await page.emulateMedia({ colorScheme: 'dark' })
  const onPhone = [...(await findAxeIssues(page)), ...(await findScrolledSideways(page))]
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(size)
  return [...found, ...onPhone.map((issue) => `on a phone in the dark: ${issue}`)]
}

/** The page, and boxes in it, that scroll sideways. Code may, in a box of its own, and what is typed, in its field. */
export async function findScrolledSideways(page: Page): Promise<string[]> {
  return await page.evaluate<string[]>(`(() => {
    const isScrolled = (element) => {
      if (element !== document.documentElement && element.matches('pre, input, textarea')) return false
      const { overflowX } = getComputedStyle(element)
      const canScroll = element === document.documentElement || overflowX === 'auto' || overflowX === 'scroll'
      return canScroll && element.scrollWidth > element.clientWidth + 1
    }
    return [...document.querySelectorAll('*')]
      .filter(isScrolled)
      .map((element) => (element.scrollWidth - element.clientWidth) + ' pixels: ' + element.outerHTML.slice(0, 100))
  })()`)
}
