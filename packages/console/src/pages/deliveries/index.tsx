import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import type { AppDeliveryOut, DeliveryDetailOut } from '@workflow-service/contract'
import { useList, useRead } from '../../api/index.ts'
import { IconButton } from '../../components/button.tsx'
import { FilterPeriod, FilterSelect, ListPage, useFilters } from '../../components/data-list.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Loaded, Page, pageOf, useTitle } from '../../components/page.tsx'
import { useShortcuts } from '../../components/shortcuts.ts'
import { durationText, StatusBadge, statusTexts, Time } from '../../components/status-and-time.tsx'
import { linkTo, logLink } from '../../components/thing-link.tsx'
import { canResend, DeliveryDetails, ResendButton } from './delivery-details.tsx'

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

const titleOf = ({ kind, source_name: source }: DeliveryDetailOut) =>
  `${kind === 'verification' ? 'Verification of' : 'Delivery to'} ${source ?? 'an unsaved source'}`

/** A delivery beside the log. */
export function DeliveryDrawer() {
  const params = useParams({ from: '/app/sources/$source_id/logs/$delivery_id' })
  const navigate = useNavigate()
  const query = useRead('getDelivery', { params: { delivery_id: params.delivery_id } })
  const delivery = query.data
  const title = delivery ? titleOf(delivery) : 'Delivery'
  useTitle(title)
  /** Opens another request of the log, or only the log. */
  const open = (id?: string) => void navigate({ ...logLink(params.source_id, id), search: true })
  const neighbors = [
    { key: 'k', icon: 'up', label: 'Newer (k)', id: delivery?.newer_id },
    { key: 'j', icon: 'down', label: 'Older (j)', id: delivery?.older_id },
  ] as const
  useShortcuts(Object.fromEntries(neighbors.map(({ key, id }) => [key, () => id && open(id)])), 1)
  return (
    <Dialog
      className="drawer"
      title={title}
      onClose={open}
      tools={neighbors.map(({ key, icon, label, id }) => (
        <IconButton key={key} icon={icon} label={label} disabled={!id} onClick={() => id && open(id)} />
      ))}
      actions={delivery && canResend(delivery) ? <ResendButton delivery={delivery} onSent={open} /> : null}
    >
      <Loaded query={query}>{(data) => <DeliveryDetails delivery={data} />}</Loaded>
    </Dialog>
  )
}

/** A delivery as a page: of a run, or found by its id. */
export const DeliveryPage = pageOf('getDelivery', Delivery)

function Delivery(delivery: DeliveryDetailOut) {
  const { source_id: sourceId, source_name: source } = delivery
  const navigate = useNavigate()
  return (
    <Page
      title={titleOf(delivery)}
      back={source ? [`Logs of ${source}`, logLink(sourceId)] : ['Webhook sources', { to: '/sources' }]}
      actions={<ResendButton delivery={delivery} onSent={(id) => void navigate(linkTo('delivery', id))} />}
    >
      <DeliveryDetails delivery={delivery} />
    </Page>
  )
}
