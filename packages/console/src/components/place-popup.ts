const GAP = 4
const EDGE = 8

const followers = new WeakMap<HTMLElement, AbortController>()

/**
 * Places a shown popover below its anchor, or above it if it only fits there, within the window. While it is shown, it
 * scrolls with its anchor.
 */
export function placePopup(popup: HTMLElement, anchor: HTMLElement, align: 'start' | 'end'): void {
  followers.get(popup)?.abort()
  const follower = new AbortController()
  followers.set(popup, follower)
  const { top, bottom, left, right } = anchor.getBoundingClientRect()
  const { offsetWidth: width, offsetHeight: height } = popup
  const [above, below] = [top - GAP - height, bottom + GAP]
  const isAbove = below + height > innerHeight && above >= EDGE
  const wanted = align === 'start' ? left : right - width
  const y = isAbove ? above : Math.max(EDGE, Math.min(below, innerHeight - height - EDGE))
  const x = Math.max(EDGE, Math.min(wanted, innerWidth - width - EDGE))
  const follow = () => {
    const now = anchor.getBoundingClientRect()
    popup.style.top = `${y + now.top - top}px`
    popup.style.left = `${x + now.left - left}px`
  }
  follow()
  const whileShown = (act: () => void) => () => (popup.matches(':popover-open') ? act() : follower.abort())
  const { signal } = follower
  document.addEventListener('scroll', whileShown(follow), { capture: true, passive: true, signal })
  window.addEventListener(
    'resize',
    whileShown(() => placePopup(popup, anchor, align)),
    { signal },
  )
}
