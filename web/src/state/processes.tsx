import { useTranslation } from 'react-i18next'
import type { RunProcess } from '../api/types'
import { gib, span } from '../model/format'

const mib = (size: number | null) => (size === null ? '–' : size < 1024 ? `${size} MiB` : `${gib(size)} GiB`)

/** The processes of a run that lives: what each uses, those on cards first. */
export function Processes({ processes }: { processes: RunProcess[] }) {
  const { t } = useTranslation()
  if (processes.length === 0) return null
  return (
    <section>
      <h3>{t('processes.title')}</h3>
      <table className="processes">
        <thead>
          <tr>
            {['pid', 'cpu', 'memory', 'gpu', 'peak', 'long'].map((name) => (
              <th key={name} scope="col">
                {t(`processes.${name}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {processes.map((one) => (
            <tr key={one.pid} title={one.command}>
              <th scope="row">{one.pid}</th>
              <td>{one.cpu_percent === null ? '–' : `${Math.round(one.cpu_percent)} %`}</td>
              <td>{mib(one.rss_mib)}</td>
              <td>{mib(one.gpu_mib)}</td>
              <td>{mib(one.gpu_peak_mib)}</td>
              <td>{one.ran_s === null ? '–' : span(one.ran_s)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
