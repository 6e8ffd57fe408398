import { useNavigate, useParams } from '@tanstack/react-router'
import type { DeliveryDetailOut } from '@workflow-service/contract'
import { useRead } from '../../api/index.ts'
import { IconButton } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Page, useTitle } from '../../components/page.tsx'
import { useShortcuts } from '../../components/shortcuts.ts'
import { Loaded, pageOf } from '../../components/states.tsx'
import { linkTo, logLink } from '../../components/thing-link.tsx'
import { canResend, DeliveryDetails, ResendButton } from './delivery-details.tsx'

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
