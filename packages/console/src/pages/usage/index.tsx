import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { AppRequest, UsageOut } from '@workflow-service/contract'
import { USAGE_MAX_DAYS } from '@workflow-service/contract/limits'
import { queryFor } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Chart } from '../../components/chart.tsx'
import { download } from '../../components/download.ts'
import { FilterPeriod, FilterSelect, useFilters } from '../../components/filters.tsx'
import { Loaded, Page, Section } from '../../components/page.tsx'
import { countOf, type Measure, RESULTS } from '../../components/results.ts'
import { DATE_TIME, DAY_MS, durationText, useLastDay, useNow } from '../../components/status-and-time.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { linkTo } from '../../components/thing-link.tsx'

type Group = NonNullable<AppRequest<'getUsage'>['query']['by']>

const PERIODS = { 1: 'Last 24 hours', 30: 'Last 30 days', 90: 'Last 90 days', chosen: 'Choose a period' }
const OTHER_GROUPS = {
  webhook_source: 'By webhook source',
  api_key: 'By API key',
  model: 'By model',
  lookup: 'By look-up',
}
const GROUPS: Record<Group, string> = { workflow: 'By workflow', ...OTHER_GROUPS }

export function UsagePage() {
  const filters = useFilters('days', 'by', 'since', 'until')
  const { days = '7', since, until } = filters
  const by = (filters.by ?? 'workflow') as Group
  const [now, lastDay] = [useNow(), useLastDay()]
  // As many bars as it says, the last of which is of this hour or day.
  const begin = new Date(now - (now % DAY_MS) - ((Number(days) || 7) - 1) * DAY_MS).toISOString()
  const period = days === 'chosen' ? { since, until } : { since: days === '1' ? lastDay : begin }
  const isTooLong =
    Math.min(Date.parse(until ?? '') || now, now) - Date.parse(period.since ?? '') > USAGE_MAX_DAYS * DAY_MS
  const query = useQuery({
    ...queryFor('getUsage', { query: { ...period, by } }),
    placeholderData: keepPreviousData,
    enabled: !isTooLong,
  })
  return (
    <Page title="Usage">
      <div className="filters" role="search" aria-label="Filter the usage">
        <FilterSelect name="days" label="Period" none="Last 7 days" options={PERIODS} />
        {days === 'chosen' ? <FilterPeriod none="Last 7 days" /> : null}
      </div>
      {isTooLong ? (
        <p className="state" role="status">
          The usage of at most {USAGE_MAX_DAYS} days is shown at once. Choose a shorter period.
        </p>
      ) : (
        <Loaded query={query}>
          {(usage) => (
            <>
              <OverTime usage={usage} title="Starts" measure="starts" />
              <OverTime usage={usage} title="Deliveries" measure="deliveries" />
              <Groups by={by} groups={usage.groups} currency={usage.currency} />
            </>
          )}
        </Loaded>
      )}
    </Page>
  )
}

const DAY = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })

function OverTime({ usage, title, measure }: { usage: UsageOut; title: string; measure: Measure }) {
  const isHour = usage.bucket === 'hour'
  const label = `${title} by ${usage.bucket}`
  const timeText = (at: string) => (isHour ? DATE_TIME : DAY).format(new Date(at))
  const rows = usage.buckets.map((bucket) => ({ ...bucket, id: bucket.at }))
  const columns = [
    {
      header: isHour ? 'Hour' : 'Day (UTC)',
      cell: ({ at }: { at: string }) => timeText(at),
      value: ({ at }: { at: string }) => at,
    },
    ...countColumns(measure),
  ]
  return (
    <Section title={title} actions={<CsvButton name={title} columns={columns} rows={rows} />}>
      <Chart label={label} measure={measure} buckets={usage.buckets} timeText={timeText} />
      <details>
        <summary>Table</summary>
        <Table label={label} columns={columns} rows={rows} />
      </details>
    </Section>
  )
}

function Groups({ by, groups, currency }: Pick<UsageOut, 'groups' | 'currency'> & { by: Group }) {
  // Those without an id have different names.
  const rows = groups.map((group) => ({ ...group, thingId: group.id, id: group.id ?? group.name }))
  type Row = (typeof rows)[number]
  const ofStarts = [
    ...countColumns('starts', 'Runs '),
    numbers('Run time p50', (row: Row) => row.run_ms_p50, durationText),
    numbers('Run time p95', (row: Row) => row.run_ms_p95, durationText),
  ]
  const ofModels = [
    numbers('Tokens', (row: Row) => row.tokens),
    ...(currency === null ? [] : [numbers(`Cost (${currency})`, (row: Row) => row.cost_micros / 1_000_000, costText)]),
  ]
  const answers = numbers('Answers', (row: Row) => row.starts['answers'] ?? 0)
  const ofDeliveries = countColumns('deliveries', 'Deliveries ')
  const ofLookups = [
    numbers('Look-ups', (row: Row) => row.lookup_calls),
    numbers('Look-up bytes', (row: Row) => row.lookup_bytes),
  ]
  const secondary = ofLookups.map((column) => ({ ...column, isSecondary: true }))
  const ofRuns = [...ofStarts, ...ofModels, ...ofDeliveries, ...secondary]
  const shown = {
    workflow: ofRuns,
    api_key: ofRuns,
    webhook_source: ofDeliveries,
    model: [answers, ...ofModels],
    lookup: ofLookups,
  }
  const columns = [{ header: 'Name', cell: (row: Row) => row.name, value: (row: Row) => row.name }, ...shown[by]]
  return (
    <Section
      title={GROUPS[by]}
      actions={
        <>
          <span className="filters">
            <FilterSelect name="by" label="Group" none={GROUPS.workflow} options={OTHER_GROUPS} />
          </span>
          <CsvButton name={GROUPS[by]} columns={columns} rows={rows} />
        </>
      }
    >
      {rows.length === 0 ? (
        <p className="state muted">Nothing was used in this period.</p>
      ) : (
        <div className="stack groups">
          <Table
            label={GROUPS[by]}
            columns={columns}
            rows={rows}
            rowLink={({ thingId }) => (thingId !== null && by !== 'model' ? linkTo(by, thingId) : undefined)}
          />
          {by !== 'workflow' && by !== 'api_key' ? null : (
            <p className="muted">
              p50 and p95 are how long runs took: half of them, and 95 of 100, were faster. Both are right to 5 %.
            </p>
          )}
        </div>
      )}
    </Section>
  )
}

type Value = string | number
type CsvColumn<Row> = Column<Row> & { value: (row: Row) => Value | null }

const costText = (cost: number) => cost.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })
const numberText = (number: number) => number.toLocaleString('en')

/** A column of numbers; the file has them without their format. */
function numbers<Row>(header: string, value: (row: Row) => number | null, text = numberText): CsvColumn<Row> {
  const cell = (row: Row) => {
    const number = value(row)
    return number === null ? '' : text(number)
  }
  return { header, value, cell, isNumber: true }
}

function countColumns(measure: Measure, prefix = '') {
  return RESULTS[measure].map(({ label, names }) => {
    const header = prefix ? prefix + label : label.replace(/^./, (letter) => letter.toUpperCase())
    const value = (row: Record<Measure, Record<string, number>>) => countOf(row[measure], names)
    return numbers(header, value)
  })
}

function CsvButton<Row>(props: { name: string; columns: readonly CsvColumn<Row>[]; rows: readonly Row[] }) {
  const { name, columns, rows } = props
  const save = () => {
    const lines = rows.map((row) => columns.map(({ value }) => value(row) ?? ''))
    download(`usage ${name}`, 'csv', toCsv([columns.map(({ header }) => header), ...lines]))
  }
  return <Button label="CSV" aria-label={`CSV: ${name}`} icon="file" onClick={save} />
}

/** Formats rows as RFC 4180 says. */
function toCsv(lines: readonly (readonly Value[])[]): string {
  return lines.map((line) => `${line.map(toCell).join(',')}\r\n`).join('')
}

/** A spreadsheet would take a text that begins like a formula for one: it gets an apostrophe. */
function toCell(value: Value): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
