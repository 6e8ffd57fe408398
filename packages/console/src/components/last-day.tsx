import type { AppRequest, UsageOut } from '@workflow-service/contract'
import { useRead } from '../api/index.ts'
import { Chart } from './chart.tsx'
import { Loaded, Section } from './page.tsx'
import { type Measure, totalsOf } from './results.ts'
import { useLastDay } from './status-and-time.tsx'

const TIME = new Intl.DateTimeFormat('en', { timeStyle: 'short' })

interface LastDayProps {
  measure: Measure
  /** Only of this one. */
  of?: { by: AppRequest<'getUsage'>['query']['by']; id: string }
}

/** The last 24 hours by hour, with the share that failed. Nothing without starts or deliveries. */
export function LastDayChart({ measure, of }: LastDayProps) {
  const query = { since: useLastDay(), ...(of ? { by: of.by, thing_id: of.id } : {}) }
  return <Loaded query={useRead('getUsage', { query })}>{(usage) => <Hours usage={usage} measure={measure} />}</Loaded>
}

function Hours({ usage, measure }: Pick<LastDayProps, 'measure'> & { usage: UsageOut }) {
  const [good = 0, bad = 0, others = 0] = totalsOf(usage.buckets, measure)
  const total = good + bad + others
  if (total === 0) return null
  const rate = ((100 * bad) / total).toLocaleString('en', { maximumFractionDigits: 1 })
  const what = measure === 'starts' ? 'runs' : 'deliveries'
  return (
    <Section
      title={measure === 'starts' ? 'Runs by hour' : 'Deliveries by hour'}
      intro={`${rate} % of ${what} ${measure === 'starts' ? 'failed' : 'were not accepted'} in the last 24 hours.`}
    >
      <Chart
        label={`${what} of the last 24 hours`}
        measure={measure}
        buckets={usage.buckets}
        timeText={(at) => TIME.format(new Date(at))}
      />
    </Section>
  )
}
