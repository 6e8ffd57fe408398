import { createStore } from '../api/store.ts'

interface Preferences {
  theme: 'system' | 'light' | 'dark'
  shortcuts: 'on' | 'off'
}

/** Choices that belong to this browser. */
export const preferences = createStore<Preferences>({ theme: 'system', shortcuts: 'on' })

export function setPreference<Name extends keyof Preferences>(name: Name, value: Preferences[Name]): void {
  localStorage.setItem(name, value)
  applyPreferences()
}

/** Takes over what is stored, and the colors of the page: those of the system unless the person chose others. */
export function applyPreferences(): void {
  const { theme = 'system', shortcuts = 'on' } = localStorage as Partial<Preferences>
  preferences.set({ theme, shortcuts })
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme
}

// Another tab has changed one.
window.addEventListener('storage', applyPreferences)
