import { useEffect, useEffectEvent } from 'react'
import { preferences } from './preferences.ts'

/** Whether a key belongs to a control, so that it is not a shortcut. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.matches('input:not([type="checkbox"]):not([type="radio"]), textarea, select, [contenteditable="true"]')
}

let sequence = ''
let sequenceTimer: number | undefined
const SEQUENCE_MS = 1_000

/**
 * Calls back for keys (`j`), two in sequence (`g r`) or ⌘/Ctrl and a key (`mod+s`). All but the last kind do nothing
 * while typing, while another number of dialogs is open, and when the person has switched shortcuts of single keys off
 * (WCAG 2.1.4). False: the key was not meant for this callback.
 */
export function useShortcuts(shortcuts: Readonly<Record<string, () => unknown>>, dialogs = 0): void {
  const onKeyDown = useEffectEvent((event: KeyboardEvent) => {
    const hasModifier = event.metaKey || event.ctrlKey
    if (event.defaultPrevented || event.altKey || (hasModifier && event.shiftKey)) return
    const single = sequence ? `${sequence} ${event.key}` : event.key
    const press = shortcuts[hasModifier ? `mod+${event.key.toLowerCase()}` : single]
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

/**
 * Remembers the first key of a sequence. Registered before the page, which is why it sees each key last on the way up.
 */
export function watchSequences(): void {
  window.addEventListener('keydown', (event) => {
    window.clearTimeout(sequenceTimer)
    sequence = event.key === 'g' && !isTyping(event.target) && !event.metaKey && !event.ctrlKey ? 'g' : ''
    sequenceTimer = window.setTimeout(() => (sequence = ''), SEQUENCE_MS)
  })
}
