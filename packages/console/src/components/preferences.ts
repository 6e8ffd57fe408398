import { useSyncExternalStore } from 'react'

/** Choices that belong to this browser, with their defaults. */
const DEFAULTS = { theme: 'system', shortcuts: 'on' } as const
interface Preferences {
  theme: 'system' | 'light' | 'dark'
  shortcuts: 'on' | 'off'
}

const listeners = new Set<() => void>()
const valueOf = <Name extends keyof Preferences>(name: Name): Preferences[Name] =>
  (localStorage.getItem(name) as Preferences[Name] | null) ?? DEFAULTS[name]

export function usePreference<Name extends keyof Preferences>(name: Name) {
  const value = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => valueOf(name),
  )
  const set = (chosen: Preferences[Name]) => {
    localStorage.setItem(name, chosen)
    applyTheme()
    for (const listener of listeners) listener()
  }
  return [value, set] as const
}

/** Chooses the colors of the page: those of the system unless the person chose others. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = valueOf('theme')
}
