import { useTranslation } from 'react-i18next'
import { PAGES } from '../nav'
import { Dialog } from '../parts/dialog'
import { KEYMAP } from '../parts/keymap'

export default function KeysDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  const pages = PAGES.map(([, name]) => t(`page.${name}`)).join(' · ')
  return (
    <Dialog title={t('keys.title')} onClose={onClose} width={520}>
      {/* on a phone it scrolls, and is reached by keyboard there */}
      <dl className="keys" tabIndex={0} aria-label={t('keys.title')}>
        {KEYMAP.map(({ name, shown }) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>
              <kbd>{shown}</kbd>
            </dt>
            <dd>{name === 'pages' ? pages : t(`keys.${name}`)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
