import { lazy, Suspense } from 'react'
import { useDesk } from '../desk'

const loadNewJob = () => import('./newjob')
const NewJobDialog = lazy(loadNewJob)
setTimeout(() => void loadNewJob().catch(() => {}), 3000) // it is wanted at once, by a key; if it cannot be had now, it is asked for then
const CancelDialog = lazy(() => import('./cancel'))
const ChangeDialog = lazy(() => import('./change'))
const CardDrawer = lazy(() => import('./card'))
const KeysDialog = lazy(() => import('./keys'))

/** The one dialog that is open, if any. */
export function Dialogs() {
  const { asked, open } = useDesk()
  const close = (): void => open(null)
  return (
    // what is typed while a dialog is loaded is meant for it, not for the page: see keys.ts
    <Suspense fallback={<dialog open className="loading" />}>
      {asked?.kind === 'new' && <NewJobDialog preset={asked.preset} onClose={close} />}
      {asked?.kind === 'cancel' && <CancelDialog jobs={asked.jobs} onClose={close} />}
      {asked?.kind === 'change' && <ChangeDialog job={asked.job} onClose={close} />}
      {asked?.kind === 'card' && <CardDrawer index={asked.index} onClose={close} />}
      {asked?.kind === 'keys' && <KeysDialog onClose={close} />}
    </Suspense>
  )
}
