import { lazy, Suspense } from 'react'
import { useDesk } from '../desk'

const NewJobDialog = lazy(() => import('./newjob'))
const CancelDialog = lazy(() => import('./cancel'))
const ChangeDialog = lazy(() => import('./change'))
const CardDrawer = lazy(() => import('./card'))
const KeysDialog = lazy(() => import('./keys'))

/** The one dialog that is open, if any. */
export function Dialogs() {
  const { asked, open } = useDesk()
  const close = (): void => open(null)
  return (
    <Suspense>
      {asked?.kind === 'new' && <NewJobDialog preset={asked.preset} onClose={close} />}
      {asked?.kind === 'cancel' && <CancelDialog jobs={asked.jobs} onClose={close} />}
      {asked?.kind === 'change' && <ChangeDialog job={asked.job} onClose={close} />}
      {asked?.kind === 'card' && <CardDrawer index={asked.index} onClose={close} />}
      {asked?.kind === 'keys' && <KeysDialog onClose={close} />}
    </Suspense>
  )
}
