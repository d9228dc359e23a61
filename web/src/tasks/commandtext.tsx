// Commands as they stand in the file. What cannot be shown as it is, or not whole, is shown here and changed in the text.
import { type ComponentProps, useId } from 'react'
import { useTranslation } from 'react-i18next'
import { shown } from '../model/ansi'

const MOST = 20_000 // characters; a line of a megabyte would hold up the page

interface TextProps extends Omit<ComponentProps<'textarea'>, 'value' | 'onChange'> {
  text: string
  onType: (text: string) => void
}

export function CommandText({ text, onType, readOnly, ...rest }: TextProps) {
  const { t } = useTranslation()
  const id = useId()
  const seen = shown(text, MOST)
  const differs = seen.more > 0 || seen.text !== text
  return (
    <>
      <textarea
        {...rest}
        aria-describedby={[rest['aria-describedby'], differs && id].filter(Boolean).join(' ') || undefined}
        spellCheck={false}
        readOnly={readOnly || differs}
        rows={seen.text.split('\n').length}
        value={seen.text}
        onChange={(event) => onType(event.target.value)}
      />
      {differs && (
        <p className="t2" id={id}>
          {seen.more > 0 && <>{t('tasks.cut', { n: seen.more })} </>}
          {t('tasks.onlyintext')}
        </p>
      )}
    </>
  )
}
