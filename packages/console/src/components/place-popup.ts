const GAP = 4
const EDGE = 8

/** Places a shown popover below its anchor, or above it if it only fits there, within the window. */
export function placePopup(popup: HTMLElement, anchor: HTMLElement, align: 'start' | 'end'): void {
  const { top, bottom, left, right } = anchor.getBoundingClientRect()
  const { offsetWidth: width, offsetHeight: height } = popup
  const [above, below] = [top - GAP - height, bottom + GAP]
  const isAbove = below + height > innerHeight && above >= EDGE
  const wanted = align === 'start' ? left : right - width
  popup.style.top = `${isAbove ? above : Math.max(EDGE, Math.min(below, innerHeight - height - EDGE))}px`
  popup.style.left = `${Math.max(EDGE, Math.min(wanted, innerWidth - width - EDGE))}px`
}
