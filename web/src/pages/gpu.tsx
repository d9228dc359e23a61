// The first screen: which cards are free, who has the rest, what of mine runs, why the others wait.
import { useEffect, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useLive, useShownJobs } from '../api/hooks'
import { useDesk } from '../desk'
import { CardGrid } from '../gpu/cards'
import { Empty } from '../gpu/empty'
import { JobsPanel } from '../gpu/jobs'
import { Notice, PeopleStrip } from '../gpu/people'
import { Timeline } from '../gpu/timeline'
import { LogPanel } from '../log/panel'
import { ACTIVE } from '../model/jobs'

export default function Gpu() {
  const { t } = useTranslation()
  const { link, engine, cards } = useLive('link', 'engine', 'cards')
  const { picked, pick } = useDesk()
  const { jobs, whole, more, error } = useShownJobs()
  const stale = link === 'lost' || engine === false
  const first = useMemo(
    () => jobs?.find((job) => ACTIVE.has(job.state))?.id ?? jobs?.findLast((job) => job.started_at)?.id,
    [jobs],
  )
  useEffect(() => {
    if (picked === null && first !== undefined) pick(first)
  }, [picked, first, pick])
  const shown = jobs?.find((job) => job.id === picked)
  return (
    <>
      <h1 className="sr">{t('page.gpu')}</h1>
      <PeopleStrip jobs={jobs ?? []} />
      <Notice jobs={jobs ?? []} />
      <div className={stale ? 'stale' : ''}>
        <CardGrid cards={cards?.gpus ?? []} jobs={jobs ?? []} loaded={cards !== null} error={cards?.error ?? ''} />
      </div>
      {jobs?.length === 0 ? (
        <Empty cards={cards?.gpus ?? []} />
      ) : (
        <div className="lower">
          <JobsPanel jobs={jobs ?? []} loaded={jobs !== undefined} whole={whole} more={more} error={error?.message ?? ''} />
          <div className="right">
            <div className={stale || cards?.error ? 'stale' : ''}>
              <Timeline jobs={jobs ?? []} />
            </div>
            {shown && <LogPanel job={shown} compact />}
          </div>
        </div>
      )}
    </>
  )
}
