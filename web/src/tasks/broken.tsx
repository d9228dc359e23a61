// A block that is not understood, as it stands in the file: mended here or in the text, it is the same.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { BrokenBlock } from '../api/types'
import { Icon } from '../parts/icons'
import { CommandText } from './commandtext'

interface BrokenProps {
  block: BrokenBlock
  readOnly: boolean
  onChange: (text: string) => void
  onGo: (line: number) => void
}

export function BrokenRow({ block, readOnly, onChange, onGo }: BrokenProps) {
  const { t } = useTranslation()
  const [typed, setTyped] = useState<string | null>(null) // while one types, lines may come and go
  const id = `broken-${block.line}`
  return (
    <section className="proc broken" aria-label={t('tasks.brokenat', { line: block.line })}>
      <span className="fail">
        <Icon name="warn" size={12} />
      </span>
      <span className="t2">{block.line}</span>
      <span className="grow">
        <CommandText
          aria-label={t('tasks.brokenat', { line: block.line })}
          aria-invalid
          aria-describedby={id}
          readOnly={readOnly}
          text={typed ?? block.text}
          onType={setTyped}
          onBlur={() => {
            if (typed !== null && typed !== block.text) onChange(typed)
            setTyped(null)
          }}
        />
      </span>
      <span className="flaw" id={id}>
        {block.flaws.map((flaw) => (
          <span key={`${flaw.line}${flaw.text}`}>
            <button type="button" className="link fail" onClick={() => flaw.line && onGo(flaw.line)}>
              {t('tasks.line', { line: flaw.line })}
            </button>{' '}
            {flaw.text}
          </span>
        ))}
      </span>
    </section>
  )
}
