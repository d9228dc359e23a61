// What would become of each task if it were started now: asked of the engine while the page is looked at.
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { post } from '../api/call'
import { useLive, useRights } from '../api/hooks'
import type { Mode } from '../api/types'
import { useSettled } from '../newjob/settled'

export interface TaskOutlook {
  queue: number
  line: number
  starts: boolean
  chance: boolean
  gpus: number[]
  after: number[]
  text: string
}

export interface TasksOutlook {
  known: boolean
  tasks: TaskOutlook[]
  never: string[]
  more: number
  drawn: string
}

const ASK_MS = 5000 // cards change while one writes

export function useOutlook(mode: Mode, index: number, text: string, enabled: boolean): TasksOutlook | undefined {
  const { i18n } = useTranslation()
  const { link, engine } = useLive('link', 'engine')
  const { mayWrite } = useRights()
  const settled = useSettled(text)
  const { data } = useQuery({
    queryKey: ['outlook', mode, index, settled, i18n.language, engine],
    queryFn: () => post<TasksOutlook>(`/api/v1/commands/${mode}/outlook`, { text: settled }, { config_index: index }),
    enabled: enabled && mayWrite && settled.trim() !== '',
    refetchInterval: link === 'live' ? ASK_MS : false,
    placeholderData: (last) => last,
    retry: false,
  })
  return data
}
