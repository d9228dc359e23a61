// Mean, deviation and each run as a dot, a row per group and a part per column, drawn as SVG of our own.
import { useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../parts/icons'
import { type Table, ticks } from './model'
import { save } from './results'
import type { Cell } from './types'

const WIDTH = 486
const ROW = 34
const HEAD = 30
const FOOT = 26
const LEFT = 86
const GAP = 24
const RIGHT = 14
const MOST = 60 // rows of one picture
const LONGEST = 14

const cut = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text)

interface Axis {
  at: (value: number) => number
  ticks: number[]
}

function axis(cells: (Cell | null)[], from: number, to: number): Axis {
  const values = cells.flatMap((cell) => (cell ? [...cell.values, cell.mean - (cell.std ?? 0), cell.mean + (cell.std ?? 0)] : []))
  const marks = ticks(Math.min(...values), Math.max(...values))
  const low = marks[0] ?? 0
  const high = marks.at(-1) ?? 1
  return { at: (value) => from + ((value - low) / (high - low || 1)) * (to - from), ticks: marks }
}

export default function Plot({ made, metric, name }: { made: Table; metric: string; name: string }) {
  const { t } = useTranslation()
  const svg = useRef<SVGSVGElement>(null)
  const lines = made.lines.slice(0, MOST)
  const filled = made.columns.map((_, k) => k).filter((k) => lines.some((line) => line.cells[k]))
  const height = HEAD + lines.length * ROW + FOOT
  const width = (WIDTH - LEFT - RIGHT - GAP * (filled.length - 1)) / Math.max(1, filled.length)
  const take = (): void => {
    if (svg.current) save(standalone(svg.current), name, 'image/svg+xml')
  }
  return (
    <>
      <header>
        <h2>{metric}</h2>
        <span className="t3 clip">{t('experiments.plothow')}</span>
        <span className="grow" />
        <button type="button" className="btn small" onClick={take}>
          <Icon name="down" size={12} />
          SVG
        </button>
      </header>
      <div className="scroll">
        <svg
          ref={svg}
          className="plot"
          viewBox={`0 0 ${WIDTH} ${height}`}
          role="img"
          aria-label={t('experiments.plotof', { metric })}
        >
          {filled.map((k, i) => {
            const from = LEFT + i * (width + GAP)
            const scale = axis(
              lines.map((line) => line.cells[k] ?? null),
              from,
              from + width,
            )
            return (
              <g key={made.columns[k]?.value ?? ''}>
                {made.columns[k]?.value && (
                  <text className="head" x={from} y={16}>
                    {cut(made.columns[k].value)}
                  </text>
                )}
                {scale.ticks.map((tick) => (
                  <g key={tick}>
                    <line className="grid" x1={scale.at(tick)} x2={scale.at(tick)} y1={HEAD - 6} y2={height - FOOT} />
                    <text className="figure" x={scale.at(tick)} y={height - 8}>
                      {tick}
                    </text>
                  </g>
                ))}
                {lines.map((line, row) => {
                  const cell = line.cells[k]
                  return cell && <Whisker key={line.name} cell={cell} at={scale.at} y={HEAD + row * ROW + ROW / 2 - 4} />
                })}
              </g>
            )
          })}
          {lines.map((line, row) => (
            <text
              key={line.name}
              className={line.cells.some((cell) => cell?.best) ? 'name best' : 'name'}
              x={0}
              y={HEAD + row * ROW + ROW / 2}
            >
              <title>{line.name}</title>
              {cut(line.name)}
            </text>
          ))}
        </svg>
      </div>
    </>
  )
}

function Whisker({ cell, at, y }: { cell: Cell; at: (value: number) => number; y: number }) {
  const spread = cell.std ?? 0
  const [low, high] = [at(cell.mean - spread), at(cell.mean + spread)]
  return (
    <g className={cell.best ? 'mark best' : 'mark'}>
      <path d={`M${low} ${y - 5}v10M${high} ${y - 5}v10M${low} ${y}H${high}`} />
      <circle cx={at(cell.mean)} cy={y} r={3.8} />
      {cell.values.map((value, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two runs may have the same value
        <circle key={i} className="seed" cx={at(value)} cy={y + 10} r={1.6} />
      ))}
    </g>
  )
}

const STYLED = ['fill', 'stroke', 'stroke-width', 'font-size', 'font-weight', 'font-family', 'text-anchor']

/** The picture with its looks in it, for other programs. */
function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  const originals = svg.querySelectorAll('*')
  copy.querySelectorAll('*').forEach((element, i) => {
    const original = originals[i]
    if (!original) return
    const look = getComputedStyle(original)
    for (const name of STYLED) element.setAttribute(name, look.getPropertyValue(name))
    element.removeAttribute('class')
  })
  return new XMLSerializer().serializeToString(copy)
}
