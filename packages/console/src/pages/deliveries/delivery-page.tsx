import { useNavigate, useParams } from '@tanstack/react-router'
import type { DeliveryDetailOut } from '@workflow-service/contract'
import { useRead } from '../../api/queries.ts'
import { IconButton } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Page, useTitle } from '../../components/page.tsx'
import { useShortcuts } from '../../components/shortcuts.ts'
import { Loaded } from '../../components/states.tsx'
import { canResend, DeliveryDetails, ResendButton } from './delivery-details.tsx'

const titleOf = (delivery: DeliveryDetailOut | undefined) =>
  delivery
    ? `${delivery.kind === 'verification' ? 'Verification of' : 'Delivery to'} ${delivery.source_name ?? 'an unsaved source'}`
    : 'Delivery'

/** A delivery beside the log. */
export function DeliveryDrawer() {
  const { sourceId, deliveryId } = useParams({ from: '/app/sources/$sourceId/logs/$deliveryId' })
  const navigate = useNavigate()
  const query = useRead('getDelivery', { params: { delivery_id: deliveryId } })
  const delivery = query.data
  useTitle(titleOf(delivery))
  const open = (id: string | null | undefined) => {
    const params = { sourceId, deliveryId: id ?? '' }
    if (id) void navigate({ to: '/sources/$sourceId/logs/$deliveryId', params, search: true })
  }
  const close = () => void navigate({ to: '/sources/$sourceId/logs', params: { sourceId }, search: true })
  const neighbors = [
    { key: 'k', icon: 'up', label: 'Newer (k)', id: delivery?.newer_id },
    { key: 'j', icon: 'down', label: 'Older (j)', id: delivery?.older_id },
  ] as const
  useShortcuts(Object.fromEntries(neighbors.map(({ key, id }) => [key, () => open(id)])), 1)
  return (
    <Dialog
      className="drawer"
      title={titleOf(delivery)}
      onClose={close}
      tools={neighbors.map(({ key, icon, label, id }) => (
        <IconButton key={key} icon={icon} label={label} disabled={!id} onClick={() => open(id)} />
      ))}
      actions={delivery && canResend(delivery) ? <ResendButton delivery={delivery} onSent={open} /> : null}
    >
      <Loaded query={query}>{(data) => <DeliveryDetails delivery={data} />}</Loaded>
    </Dialog>
  )
}

/** A delivery as a page: of a run, or found by its id. */
export function DeliveryPage() {
  const { deliveryId } = useParams({ from: '/app/deliveries/$deliveryId' })
  const navigate = useNavigate()
  const query = useRead('getDelivery', { params: { delivery_id: deliveryId } })
  const open = (id: string) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId: id } })
  return (
    <Loaded query={query} isPage>
      {(delivery) => (
        <Page
          title={titleOf(delivery)}
          back={
            delivery.source_name
              ? [
                  `Logs of ${delivery.source_name}`,
                  { to: '/sources/$sourceId/logs', params: { sourceId: delivery.source_id } },
                ]
              : ['Webhook sources', { to: '/sources' }]
          }
          actions={<ResendButton delivery={delivery} onSent={open} />}
        >
          <DeliveryDetails delivery={delivery} />
        </Page>
      )}
    </Loaded>
  )
}
