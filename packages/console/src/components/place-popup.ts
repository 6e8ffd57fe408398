const GAP = 4
const EDGE = 8

/** Places a shown popover below its anchor, or above it if there is more space, within the window. */
export function placePopup(popup: HTMLElement, anchor: HTMLElement, align: 'start' | 'end'): void {
  const { top, bottom, left, right } = anchor.getBoundingClientRect()
  const { offsetWidth: width, offsetHeight: height } = popup
  const isBelow = bottom + GAP + height <= innerHeight || top < innerHeight - bottom
  const wanted = align === 'start' ? left : right - width
  popup.style.top = `${Math.max(EDGE, isBelow ? bottom + GAP : top - GAP - height)}px`
  popup.style.left = `${Math.max(EDGE, Math.min(wanted, innerWidth - width - EDGE))}px`
}
