import { useEffect, useEffectEvent } from 'react'
import { preferences } from './preferences.ts'

/** Whether a key belongs to a control, so that it is not a shortcut. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.matches('input:not([type="checkbox"]):not([type="radio"]), textarea, select, [contenteditable="true"]')
}

/**
 * Calls back for keys (`j`), or ⌘/Ctrl and a key (`mod+s`). Single keys do nothing while typing, while another
 * number of dialogs is open, and when the person has switched them off (WCAG 2.1.4). False: the key was not meant for
 * this callback.
 */
export function useShortcuts(shortcuts: Readonly<Record<string, () => unknown>>, dialogs = 0): void {
  const onKeyDown = useEffectEvent((event: KeyboardEvent) => {
    const hasModifier = event.metaKey || event.ctrlKey
    if (event.defaultPrevented || event.altKey || (hasModifier && event.shiftKey)) return
    // The key of a keyboard for other letters, such as Cyrillic ones, is that of a Latin one.
    const key = (/^\P{ASCII}$/u.test(event.key) && /^Key(.)$/.exec(event.code)?.[1]?.toLowerCase()) || event.key
    const press = shortcuts[hasModifier ? `mod+${key.toLowerCase()}` : key]
    if (!press || (!hasModifier && !areSingleKeysOn(event, dialogs))) return
    if (press() !== false) event.preventDefault()
  })
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKeyDown(event)
    document.addEventListener('keydown', listener)
    return () => document.removeEventListener('keydown', listener)
  }, [])
}

function areSingleKeysOn({ target }: KeyboardEvent, dialogs: number): boolean {
  const isMenuOpen = document.querySelector(':is([role="menu"], [role="listbox"]):popover-open') !== null
  const isDialogRight = document.querySelectorAll('dialog[open]').length === dialogs
  return preferences.get().shortcuts === 'on' && !isTyping(target) && !isMenuOpen && isDialogRight
}
