import { useEffect, useEffectEvent } from 'react'
import { usePreferences } from './preferences.ts'

/** Whether a key belongs to a control, so that it is not a shortcut. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.matches('input:not([type="checkbox"]):not([type="radio"]), textarea, select, [contenteditable="true"]')
}

let sequence = ''
let sequenceTimer: number | undefined
const SEQUENCE_MS = 1_000

/**
 * Calls back for a key, or for two in sequence (`g r`). Not while typing, in a dialog, or when the person has switched
 * shortcuts of single keys off (WCAG 2.1.4).
 */
export function useShortcut(keys: string, onPress: () => void): void {
  const { shortcuts } = usePreferences()
  const press = useEffectEvent(onPress)
  useEffect(() => {
    if (shortcuts === 'off') return
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      if (document.querySelector('dialog[open], :is([role="menu"], [role="listbox"]):popover-open')) return
      const pressed = keys.includes(' ') ? `${sequence} ${event.key}` : event.key
      if (pressed !== keys || (!keys.includes(' ') && sequence)) return
      event.preventDefault()
      press()
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [keys, shortcuts])
}

/** Remembers the first key of a sequence. Registered before the page, which is why it sees each key last on the way up. */
export function watchSequences(): void {
  window.addEventListener('keydown', (event) => {
    window.clearTimeout(sequenceTimer)
    sequence = event.key === 'g' && !isTyping(event.target) && !event.metaKey && !event.ctrlKey ? 'g' : ''
    sequenceTimer = window.setTimeout(() => (sequence = ''), SEQUENCE_MS)
  })
}
