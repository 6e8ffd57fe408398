import { linkOptions } from '@tanstack/react-router'
import type { RunOut } from '@workflow-service/contract'
import type { ReactNode } from 'react'
import type { List } from '../../api/queries.ts'
import { DataList, FilterPeriod, FilterSelect, type useFilters } from '../../components/data-list.tsx'
import { StatusBadge, statusText } from '../../components/status-badge.tsx'
import { durationText, Time } from '../../components/time.tsx'

const STATUSES = (['queued', 'running', 'succeeded', 'failed'] as const).map(
  (status) => [status, statusText(status)] as const,
)

/** What began a run, in words. */
export function originText({ origin, started_by: by }: Pick<RunOut, 'origin' | 'started_by'>): string {
  if (origin === 'auto_run') return 'Schedule'
  if (origin === 'app') return by?.name ?? 'A person'
  return by ? `API key ${by.name}` : 'API'
}

/** How long a run took, from its first attempt. */
export function runText({ started_at: start, finished_at: end }: Pick<RunOut, 'started_at' | 'finished_at'>): string {
  return start && end ? durationText(Date.parse(end) - Date.parse(start)) : ''
}

/** Runs with their filters. */
export function RunList(props: {
  list: List<RunOut>
  filters: ReturnType<typeof useFilters<'status' | 'since' | 'until'>>
  empty: ReactNode
  hasWorkflow?: boolean
}) {
  const { list, filters, empty, hasWorkflow = true } = props
  return (
    <DataList
      label="runs"
      list={list}
      columns={[
        ...(hasWorkflow ? [{ header: 'Workflow', cell: ({ workflow }: RunOut) => workflow.name }] : []),
        { header: 'Accepted', cell: ({ created_at: at }) => <Time value={at} /> },
        { header: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
        { header: 'Error', cell: ({ error }) => <span className="muted">{error}</span>, isSecondary: true },
        { header: 'Started by', cell: originText },
        { header: 'Took', cell: runText, isNumber: true },
      ]}
      rowLink={({ id }) => linkOptions({ to: '/runs/$runId', params: { runId: id } })}
      filters={
        list.rows.length === 0 && !filters.isFiltered ? null : (
          <>
            <FilterSelect filters={filters} name="status" label="Status" options={STATUSES} />
            <FilterPeriod filters={filters} />
          </>
        )
      }
      isFiltered={filters.isFiltered}
      empty={empty}
    />
  )
}
