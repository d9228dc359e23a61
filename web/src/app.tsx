import { lazy, Suspense, useEffect } from 'react'
import { Redirect, Route, Switch, useLocation } from 'wouter'
import { putCodeAside } from './api/code'
import { useFreshness, useSession } from './api/hooks'
import { live } from './api/live'
import { DeskProvider } from './desk'
import { isWatching } from './parts/bell'
import { Guard } from './parts/guard'
import { Toasts } from './parts/toast'
import { Shell } from './shell'

const Login = lazy(() => import('./pages/login'))
const Gpu = lazy(() => import('./pages/gpu'))
const Tasks = lazy(() => import('./pages/tasks'))
const State = lazy(() => import('./pages/state'))
const Experiments = lazy(() => import('./pages/experiments'))
const JobFiles = lazy(() => import('./pages/jobfiles'))
const Hold = lazy(() => import('./pages/hold'))
const Rules = lazy(() => import('./pages/rules'))
const Settings = lazy(() => import('./pages/settings'))

export function App() {
  return useSession() ? (
    <DeskProvider>
      <Console />
      <Toasts />
    </DeskProvider>
  ) : (
    <Suspense>
      <Login />
    </Suspense>
  )
}

function Console() {
  useFreshness()
  const [at] = useLocation()
  useEffect(() => {
    const look = (): void => {
      if (document.visibilityState === 'visible') live.open()
      else if (!isWatching()) live.close() // a hidden tab takes no connection from those that are seen
    }
    look()
    putCodeAside()
    document.addEventListener('visibilitychange', look)
    window.addEventListener('hashchange', putCodeAside)
    return () => {
      document.removeEventListener('visibilitychange', look)
      window.removeEventListener('hashchange', putCodeAside)
      live.close()
    }
  }, [])
  return (
    <Shell>
      <Guard key={at}>
        <Suspense fallback={null}>
          <Switch>
            <Route path="/gpu" component={Gpu} />
            <Route path="/command" component={Tasks} />
            <Route path="/state/:id?" component={State} />
            <Route path="/experiment/file" component={JobFiles} />
            <Route path="/experiment" component={Experiments} />
            <Route path="/hold" component={Hold} />
            <Route path="/rule" component={Rules} />
            <Route path="/setting" component={Settings} />
            <Route>
              <Redirect to="/gpu" replace />
            </Route>
          </Switch>
        </Suspense>
      </Guard>
    </Shell>
  )
}
