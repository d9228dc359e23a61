// What one holds and may hold: cards under a name, new ones, and limits.
import { useTranslation } from 'react-i18next'
import { Allocations } from '../hold/allocations'
import { LimitsPanel } from '../hold/limits'
import { NewAllocationForm } from '../hold/newalloc'
import '../style/hold.css'

export default function Hold() {
  const { t } = useTranslation()
  return (
    <div className="hold">
      <h1 className="sr">{t('page.hold')}</h1>
      <Allocations />
      <div className="holdside">
        <NewAllocationForm />
        <LimitsPanel />
      </div>
    </div>
  )
}
