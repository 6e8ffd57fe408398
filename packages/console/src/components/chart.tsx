import type { AppRequest, UsageOut } from '@workflow-service/contract'
import { useState } from 'react'
import { useRead } from '../api/index.ts'
import { Loaded, Section } from './page.tsx'
import { type Measure, RESULTS, totalsOf } from './results.ts'
import { useLastDay } from './status-and-time.tsx'

interface ChartProps {
  /** Names what is counted: `Starts`. */
  label: string
  measure: Measure
  buckets: UsageOut['buckets']
  /** The words for the time of a bucket. */
  timeText: (at: string) => string
}

/** Times below the bars: more would touch each other on a phone. */
const LABELS = 4

/** Stacked bars with a legend and a grid. A bar under the pointer is described above them, also after a tap. */
export function Chart({ label, measure, buckets, timeText }: ChartProps) {
  const [shownAt, setShownAt] = useState<number>()
  const { [measure]: series } = RESULTS
  // An hour that the end of daylight saving repeats has the words of the one before.
  const bars = buckets.map(({ at, ...of }) => ({ at, label: timeText(at), values: totalsOf([{ at, ...of }], measure) }))
  const totals = totalsOf(buckets, measure)
  const top = roundUp(Math.max(...bars.map(({ values }) => sumOf(values))))
  // Half of it is a whole number.
  const scale = [top, top / 2, 0]
  const texts = (values: readonly number[]) =>
    series.map((each, index) => `${(values[index] ?? 0).toLocaleString('en')} ${each.label}`)
  const textOf = (bar: (typeof bars)[number]) => `${bar.label}: ${texts(bar.values).join(', ')}`
  const shown = shownAt === undefined ? undefined : bars[shownAt]
  const width = widthOf(bars.length)
  const step = Math.max(1, Math.ceil(bars.length / LABELS))
  const labels = bars.filter((_, index) => index % step === 0 && (index === 0 || index + step <= bars.length))
  return (
    <figure className="chart" onPointerLeave={() => setShownAt(undefined)}>
      <figcaption className="row">
        {series.map(({ tone, label: name }, index) => (
          <span key={name} className={`badge ${totals[index] ? tone : 'quiet'}`}>
            {texts(totals)[index]}
          </span>
        ))}
        <span className="muted at-end">{shown ? textOf(shown) : null}</span>
      </figcaption>
      <div className="plot">
        <div className="scale" aria-hidden="true">
          {scale.map((count) => (
            <span key={count}>{count.toLocaleString('en')}</span>
          ))}
        </div>
        <svg
          role="img"
          aria-label={`${label}: ${texts(totals).join(', ')}`}
          viewBox={`0 0 ${bars.length} ${top}`}
          preserveAspectRatio="none"
        >
          {scale.map((y) => (
            <line key={y} x1={0} x2={bars.length} y1={y} y2={y} />
          ))}
          {bars.map(({ at, values }, index) => (
            <g key={at} onPointerEnter={() => setShownAt(index)}>
              <rect className="space" x={index} y={0} width={1} height={top} />
              {series.map(({ label: name, tone }, part) => {
                const y = top - sumOf(values.slice(0, part + 1))
                return <rect key={name} className={tone} x={index} y={y} width={width} height={values[part]} />
              })}
            </g>
          ))}
        </svg>
        <p aria-hidden="true">
          {labels.map(({ at, label: text }, index) => (
            // The last one has what is left: less space would cut its text off.
            <span key={at} style={{ flexGrow: index < labels.length - 1 ? step : bars.length - index * step }}>
              {text}
            </span>
          ))}
        </p>
      </div>
      <ul className="visually-hidden">
        {bars.map((bar) => (sumOf(bar.values) > 0 ? <li key={bar.at}>{textOf(bar)}</li> : null))}
      </ul>
    </figure>
  )
}

/** As thin as the hours of a day, however few there are. */
const widthOf = (bars: number) => 0.7 * Math.min(1, bars / 24)

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

/** The next of 2, 4, 10, 20, 40, 100 … */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)))
  return [2, 4, 10].map((factor) => factor * power).find((each) => each >= value) ?? 2
}

const TIME = new Intl.DateTimeFormat('en', { timeStyle: 'short' })

interface LastDayProps {
  measure: Measure
  /** Only of this one. */
  of?: { by: AppRequest<'getUsage'>['query']['by']; thing_id: string }
}

/** The last 24 hours by hour, with the share that failed. Nothing without starts or deliveries. */
export function LastDayChart({ measure, of }: LastDayProps) {
  const query = { since: useLastDay(), ...of }
  return <Loaded query={useRead('getUsage', { query })}>{(usage) => <Hours usage={usage} measure={measure} />}</Loaded>
}

function Hours({ usage, measure }: Pick<LastDayProps, 'measure'> & { usage: UsageOut }) {
  const [good = 0, bad = 0, others = 0] = totalsOf(usage.buckets, measure)
  const total = good + bad + others
  if (total === 0) return null
  const rate = ((100 * bad) / total).toLocaleString('en', { maximumFractionDigits: 1 })
  const [what, failed] = measure === 'starts' ? ['Runs', 'failed'] : ['Deliveries', 'were not accepted']
  return (
    <Section title={`${what} by hour`} intro={`${rate} % of ${what.toLowerCase()} ${failed} in the last 24 hours.`}>
      <Chart
        label={`${what.toLowerCase()} of the last 24 hours`}
        measure={measure}
        buckets={usage.buckets}
        timeText={(at) => TIME.format(new Date(at))}
      />
    </Section>
  )
}
