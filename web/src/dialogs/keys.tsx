import { useTranslation } from 'react-i18next'
import { Dialog } from '../parts/dialog'

const KEYS: [string, string][] = [
  ['/', 'find'],
  ['N', 'new'],
  ['?', 'keys'],
  ['g g · c · s · e · r · t', 'pages'],
  ['j  k', 'move'],
  ['Space', 'select'],
  ['Enter', 'log'],
  ['x', 'cancel'],
  ['r', 'retry'],
  ['h', 'hold'],
  ['y', 'copy'],
  ['0 – 9', 'card'],
  ['← →', 'nextcard'],
  ['f', 'follow'],
  ['G', 'end'],
  ['[  ]', 'tries'],
  ['w', 'wrap'],
  ['Alt ↑ ↓', 'reorder'],
  ['Ctrl S', 'save'],
  ['F8', 'flaw'],
  ['Esc', 'escape'],
]

export default function KeysDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog title={t('keys.title')} onClose={onClose} width={460}>
      <dl className="keys">
        {KEYS.map(([key, name]) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{t(`keys.${name}`)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
