import { linkOptions, Outlet, useParams } from '@tanstack/react-router'
import type { AppDeliveryOut } from '@workflow-service/contract'
import { useList, useRead } from '../../api/queries.ts'
import { DataList, FilterPeriod, FilterSelect, useFilters } from '../../components/data-list.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge, statusText } from '../../components/status-badge.tsx'
import { durationText, Time } from '../../components/time.tsx'

const OUTCOMES = (
  ['accepted', 'rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown', 'in_flight'] as const
).map((outcome) => [outcome, statusText(outcome)] as const)
const KINDS = [
  ['payload', 'Payload'],
  ['verification', 'Verification'],
] as const

export function SourceLogPage() {
  const { sourceId } = useParams({ from: '/app/sources/$sourceId/logs' })
  const source = useRead('getWebhookSource', { params: { source_id: sourceId } }).data
  const filters = useFilters('outcome', 'kind', 'since', 'until')
  const list = useList('listDeliveries', { params: { source_id: sourceId }, query: filters.values as never })
  return (
    <Page
      title={source ? `Logs of ${source.name}` : 'Logs'}
      back={
        source
          ? { label: source.name, link: linkOptions({ to: '/sources/$sourceId', params: { sourceId } }) }
          : { label: 'Webhook sources', link: linkOptions({ to: '/sources' }) }
      }
      intro="Every request to this endpoint and its answer."
    >
      <DataList
        label="deliveries"
        list={list}
        columns={[
          { header: 'Time', cell: ({ created_at: at }) => <Time value={at} /> },
          { header: 'Outcome', cell: ({ outcome }) => <StatusBadge status={outcome} /> },
          { header: 'Status', cell: ({ status }) => status, isNumber: true },
          { header: 'Took', cell: ({ duration_ms: ms }) => (ms === null ? '' : durationText(ms)), isNumber: true },
          { header: 'Kind', cell: kindText },
          {
            header: 'Answer or reason',
            cell: ({ reason, answer }) => <span className="muted clamp">{reason ?? answer}</span>,
            isSecondary: true,
          },
        ]}
        rowLink={({ id }) =>
          linkOptions({
            to: '/sources/$sourceId/logs/$deliveryId',
            params: { sourceId, deliveryId: id },
            search: true,
          })
        }
        filters={
          list.rows.length === 0 && !filters.isFiltered ? null : (
            <>
              <FilterSelect filters={filters} name="outcome" label="Outcome" options={OUTCOMES} />
              <FilterSelect filters={filters} name="kind" label="Kind" options={KINDS} />
              <FilterPeriod filters={filters} />
            </>
          )
        }
        isFiltered={filters.isFiltered}
        empty={
          <EmptyState icon="audit" title="Nothing was sent yet">
            Verifications and what agents send appear here.
          </EmptyState>
        }
      />
      <Outlet />
    </Page>
  )
}

/** What a delivery is, in words. */
function kindText({ kind, resend_of: resendOf, sent_by: by, run_id: runId, workflow }: AppDeliveryOut): string {
  if (kind === 'verification') return 'Verification'
  if (resendOf) return `Sent again by ${by?.name ?? 'a person'}`
  return runId && workflow ? `Payload of ${workflow.name}` : 'Payload'
}
