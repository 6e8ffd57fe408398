const GAP = 4
const EDGE = 8

type Box = Pick<DOMRect, 'top' | 'bottom' | 'left' | 'right'>

/** Places a shown popover below its anchor, or above it if there is more space, within the window. */
export function placePopup(popup: HTMLElement, { top, bottom, left, right }: Box, align: 'start' | 'end'): void {
  const { offsetWidth: width, offsetHeight: height } = popup
  const isBelow = bottom + GAP + height <= innerHeight || top < innerHeight - bottom
  const wanted = align === 'start' ? left : right - width
  popup.style.top = `${Math.max(EDGE, isBelow ? bottom + GAP : top - GAP - height)}px`
  popup.style.left = `${Math.max(EDGE, Math.min(wanted, innerWidth - width - EDGE))}px`
}

const COPIED = ['font', 'letterSpacing', 'lineHeight', 'padding', 'border', 'boxSizing', 'tabSize'] as const

/**
 * Measures where a character of a text area is in the window: a copy of the field breaks its lines at the same words.
 */
export function caretRect(area: HTMLTextAreaElement, position: number): Box {
  const copy = document.createElement('div')
  const style = getComputedStyle(area)
  for (const name of COPIED) copy.style[name] = style[name]
  Object.assign(copy.style, {
    position: 'fixed',
    visibility: 'hidden',
    whiteSpace: 'pre-wrap',
    overflowWrap: 'break-word',
  })
  copy.style.width = `${area.clientWidth + Number.parseFloat(style.borderLeftWidth) * 2}px`
  copy.textContent = area.value.slice(0, position)
  const mark = document.createElement('span')
  mark.textContent = area.value.slice(position) || '.'
  copy.append(mark)
  document.body.append(copy)
  const field = area.getBoundingClientRect()
  const start = mark.getClientRects()[0] ?? mark.getBoundingClientRect()
  const box = copy.getBoundingClientRect()
  copy.remove()
  const top = field.top + start.top - box.top - area.scrollTop
  const left = field.left + start.left - box.left
  return { top, bottom: top + start.height, left, right: left }
}
