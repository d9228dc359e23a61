import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { choose, type Language } from '../i18n'
import { kept, setTheme, type Theme } from '../theme'
import { Segmented } from './controls'
import { Icon } from './icons'

export function LanguageChoice() {
  const { t, i18n } = useTranslation()
  return (
    <Segmented<Language>
      label={t('shell.language')}
      value={i18n.language === 'zh' ? 'zh' : 'en'}
      choices={[
        { value: 'zh', label: '中', title: '中文' },
        { value: 'en', label: 'EN', title: 'English' },
      ]}
      onChange={choose}
    />
  )
}

export function ThemeChoice() {
  const { t } = useTranslation()
  const [theme, set] = useState(kept())
  const change = (next: Theme): void => {
    set(next)
    setTheme(next)
  }
  return (
    <Segmented<Theme>
      label={t('shell.theme')}
      value={theme}
      choices={[
        { value: 'auto', label: t('shell.auto'), title: t('shell.auto') },
        { value: 'light', label: <Icon name="sun" size={14} />, title: t('shell.light') },
        { value: 'dark', label: <Icon name="moon" size={14} />, title: t('shell.dark') },
      ]}
      onChange={change}
    />
  )
}
