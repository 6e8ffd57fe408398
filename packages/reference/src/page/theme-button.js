import { one, remember } from './dom.js'

const THEMES = ['system', 'light', 'dark']

/** The button goes from one theme to the next; `theme.js` has applied the remembered one. */
export function startThemeButton() {
  const { dataset } = document.documentElement
  const button = one('.theme')
  const setTheme = (theme) => {
    if (theme === 'system') delete dataset['theme']
    else dataset['theme'] = theme
    button.title = `Theme: ${theme === 'system' ? 'as the system' : theme}`
    button.setAttribute('aria-label', button.title)
  }
  const current = () => Math.max(0, THEMES.indexOf(dataset['theme'] ?? ''))
  setTheme(String(THEMES[current()]))
  button.addEventListener('click', () => {
    const theme = String(THEMES[(current() + 1) % THEMES.length])
    setTheme(theme)
    remember('theme', theme === 'system' ? '' : theme)
  })
}
