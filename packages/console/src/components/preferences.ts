import { createStore } from '../api/store.ts'

interface Preferences {
  theme: 'system' | 'light' | 'dark'
  shortcuts: 'on' | 'off'
}

/** Choices that belong to this browser. */
export const preferences = createStore<Preferences>({
  theme: (localStorage.getItem('theme') as Preferences['theme'] | null) ?? 'system',
  shortcuts: (localStorage.getItem('shortcuts') as Preferences['shortcuts'] | null) ?? 'on',
})

export function setPreference<Name extends keyof Preferences>(name: Name, value: Preferences[Name]): void {
  localStorage.setItem(name, value)
  preferences.set({ ...preferences.get(), [name]: value })
  applyTheme()
}

/** Chooses the colors of the page: those of the system unless the person chose others. */
export function applyTheme(): void {
  const { theme } = preferences.get()
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme
}
