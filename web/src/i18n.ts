// Two languages, all texts in the bundle. The reader's choice is kept; else the browser's.
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import en from './locale/en'
import zh from './locale/zh'

const KEPT = 'jostle.lang'

export type Language = 'zh' | 'en'

function first(): Language {
  const kept = localStorage.getItem(KEPT)
  if (kept === 'zh' || kept === 'en') return kept
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export function choose(language: Language): void {
  localStorage.setItem(KEPT, language)
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  void i18next.changeLanguage(language)
}

void i18next.use(initReactI18next).init({
  lng: first(),
  fallbackLng: 'en',
  resources: { en: { translation: en }, zh: { translation: zh } },
  interpolation: { escapeValue: false }, // React writes text, never HTML
  initAsync: false,
})
document.documentElement.lang = i18next.language === 'zh' ? 'zh-CN' : 'en'
