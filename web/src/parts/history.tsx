// Load and memory of a card over the minutes this tab has seen.
import { useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { live } from '../api/live'

const HEIGHT = 150

function columns(uuid: string): uPlot.AlignedData {
  const rows = live.samples.get(uuid) ?? []
  return [
    rows.map((row) => row.at / 1000),
    rows.map((row) => row.load),
    rows.map((row) => (row.load === null ? null : row.used * 100)),
  ]
}

export default function History({ uuid }: { uuid: string }) {
  const { t } = useTranslation()
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const div = place.current
    if (!div) return
    const tone = (name: string): string => getComputedStyle(div).getPropertyValue(name).trim()
    const axis = {
      stroke: tone('--t3'),
      grid: { stroke: tone('--line'), width: 1 },
      ticks: { show: false },
      font: '10.5px system-ui',
    }
    const plot = new uPlot(
      {
        width: div.clientWidth || 500,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        scales: { y: { range: [0, 100] } },
        axes: [
          { ...axis, values: '{HH}:{mm}:{ss}', space: 80 },
          { ...axis, size: 34, values: (_plot, ticks) => ticks.map((tick) => `${tick}%`) },
        ],
        series: [
          {},
          { label: t('card.load'), stroke: tone('--t3'), fill: `${tone('--t3')}33`, width: 1 },
          { label: t('card.memory'), stroke: tone('--accent'), width: 1.5 },
        ],
      },
      columns(uuid),
      div,
    )
    const stop = live.subscribe(() => plot.setData(columns(uuid)))
    const watch = new ResizeObserver(() => plot.setSize({ width: div.clientWidth, height: HEIGHT }))
    watch.observe(div)
    return () => {
      stop()
      watch.disconnect()
      plot.destroy()
    }
  }, [uuid, t])
  return <div ref={place} role="img" aria-label={t('card.historyof')} />
}
