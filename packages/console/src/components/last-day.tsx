import type { AppRequest, UsageOut } from '@workflow-service/contract'
import { useRead } from '../api/index.ts'
import { Chart } from './chart.tsx'
import { Loaded, Section } from './page.tsx'
import { countOf, DELIVERY_RESULTS, RUN_RESULTS } from './results.ts'
import { useNow } from './status-and-time.tsx'

const HOUR_MS = 3_600_000
const TIME = new Intl.DateTimeFormat('en', { timeStyle: 'short' })
const SERIES = { starts: RUN_RESULTS, deliveries: DELIVERY_RESULTS } as const

interface LastDayProps {
  measure: 'starts' | 'deliveries'
  /** Only of this one. */
  of?: { by: AppRequest<'getUsage'>['query']['by']; id: string }
}

/** The last 24 hours by hour, with the share that failed. Nothing without starts or deliveries. */
export function LastDayChart({ measure, of }: LastDayProps) {
  const now = useNow()
  const since = new Date(now - (now % HOUR_MS) - 23 * HOUR_MS).toISOString()
  const query = { since, ...(of ? { by: of.by, thing_id: of.id } : {}) }
  return <Loaded query={useRead('getUsage', { query })}>{(usage) => <Hours usage={usage} measure={measure} />}</Loaded>
}

function Hours({ usage, measure }: Pick<LastDayProps, 'measure'> & { usage: UsageOut }) {
  const { [measure]: series } = SERIES
  const count = (bucket: UsageOut['buckets'][number]) => series.map(({ names }) => countOf(bucket[measure], names))
  const bars = usage.buckets.map((bucket) => ({ label: TIME.format(new Date(bucket.at)), values: count(bucket) }))
  const sum = (index: number) => bars.reduce((total, { values }) => total + (values[index] ?? 0), 0)
  const total = series.reduce((all, _, index) => all + sum(index), 0)
  if (total === 0) return null
  const failed = series.findIndex(({ tone }) => tone === 'bad')
  const rate = ((100 * sum(failed)) / total).toLocaleString('en', { maximumFractionDigits: 1 })
  const what = measure === 'starts' ? 'runs' : 'deliveries'
  return (
    <Section
      title={measure === 'starts' ? 'Runs by hour' : 'Deliveries by hour'}
      intro={`${rate} % of ${what} ${measure === 'starts' ? 'failed' : 'were not accepted'} in the last 24 hours.`}
    >
      <Chart label={`${what} of the last 24 hours`} series={series} bars={bars} />
    </Section>
  )
}
