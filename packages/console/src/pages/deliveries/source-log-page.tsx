import { Outlet, useParams } from '@tanstack/react-router'
import type { AppDeliveryOut } from '@workflow-service/contract'
import { useList, useRead } from '../../api/index.ts'
import { FilterPeriod, FilterSelect, ListPage, useFilters } from '../../components/data-list.tsx'
import { StatusBadge, statusTexts } from '../../components/status-badge.tsx'
import { linkTo, logLink } from '../../components/thing-link.tsx'
import { durationText, Time } from '../../components/time.tsx'

const OUTCOMES = statusTexts(
  ...(['accepted', 'rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown', 'in_flight'] as const),
)
const KINDS = { payload: 'Payload', verification: 'Verification' }

export function SourceLogPage() {
  const { source_id: sourceId } = useParams({ from: '/app/sources/$source_id/logs' })
  const source = useRead('getWebhookSource', { params: { source_id: sourceId } }).data
  const filters = useFilters('outcome', 'kind', 'since', 'until')
  const list = useList('listDeliveries', { params: { source_id: sourceId }, query: filters as never })
  return (
    <ListPage
      title={source ? `Logs of ${source.name}` : 'Logs'}
      back={source ? [source.name, linkTo('webhook_source', sourceId)] : ['Webhook sources', { to: '/sources' }]}
      intro="Every request to this endpoint and its answer."
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
      rowLink={({ id }) => ({ ...logLink(sourceId, id), search: true })}
      filters={filters}
      controls={
        <>
          <FilterSelect name="outcome" label="Outcome" options={OUTCOMES} />
          <FilterSelect name="kind" label="Kind" options={KINDS} />
          <FilterPeriod />
        </>
      }
      empty={{
        icon: 'audit',
        title: 'Nothing was sent yet',
        text: 'Verifications and what agents send appear here.',
      }}
    >
      <Outlet />
    </ListPage>
  )
}

/** What a delivery is, in words. */
function kindText({ kind, resend_of: resendOf, sent_by: by, run_id: runId, workflow }: AppDeliveryOut): string {
  if (kind === 'verification') return 'Verification'
  if (resendOf) return `Sent again by ${by?.name ?? 'a person'}`
  return runId && workflow ? `Payload of ${workflow.name}` : 'Payload'
}
