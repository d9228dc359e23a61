// Dark, light or as the system has it. The choice is kept; without one the system decides, also when it changes.
export type Theme = 'auto' | 'light' | 'dark'

const KEPT = 'jostle.theme'
const system = window.matchMedia('(prefers-color-scheme: dark)')

export function kept(): Theme {
  const theme = localStorage.getItem(KEPT)
  return theme === 'light' || theme === 'dark' ? theme : 'auto'
}

function apply(): void {
  const theme = kept()
  document.documentElement.dataset.theme = theme === 'auto' ? (system.matches ? 'dark' : 'light') : theme
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEPT, theme)
  apply()
}

system.addEventListener('change', apply)
apply()
