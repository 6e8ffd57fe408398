import { useLayoutEffect, useRef } from 'react'

const STOPS = 'h1, h2, a[href], button, input, select, textarea, summary'

/** Keeps the focus near a button that is removed while it has it: on what is before it in its page or dialog. */
export function useKeptFocus() {
  const button = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    const { current } = button
    return () => {
      if (!current || document.activeElement !== current) return
      const stops = [...(current.closest('main, dialog')?.querySelectorAll<HTMLElement>(STOPS) ?? [])]
      const before = stops.slice(0, stops.indexOf(current)).toReversed()
      // Once it is removed, and with it what may be around it.
      queueMicrotask(() => void (document.activeElement === document.body && before.some(tryFocus)))
    }
  }, [])
  return button
}

/** False for what is removed, hidden, disabled, or below a dialog. */
function tryFocus(element: HTMLElement): boolean {
  if (/^H\d/.test(element.tagName)) element.tabIndex = -1
  element.focus({ preventScroll: true })
  return document.activeElement === element
}
