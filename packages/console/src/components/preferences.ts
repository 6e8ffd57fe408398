import { createStore } from '../api/store.ts'

interface Preferences {
  theme: 'system' | 'light' | 'dark'
  shortcuts: 'on' | 'off'
}

/** Choices that belong to this browser. */
export const preferences = createStore<Preferences>({ theme: 'system', shortcuts: 'on' })

export function setPreference<Name extends keyof Preferences>(name: Name, value: Preferences[Name]): void {
  try {
    localStorage.setItem(name, value)
  } catch {
    // It is blocked or full. The choice holds until the page is left.
  }
  apply({ ...preferences.get(), [name]: value })
}

function apply(chosen: Preferences): void {
  preferences.set(chosen)
  document.documentElement.style.colorScheme = chosen.theme === 'system' ? '' : chosen.theme
}

/** Takes over what is stored, and the colors of the page: those of the system unless the person chose others. */
export function applyPreferences(): void {
  const { theme = 'system', shortcuts = 'on' } = readStored()
  apply({ theme, shortcuts })
}

/** A browser that blocks cookies refuses the access itself. */
function readStored(): Partial<Preferences> {
  try {
    return localStorage as Partial<Preferences>
  } catch {
    return {}
  }
}

// Another tab has changed one.
window.addEventListener('storage', applyPreferences)
