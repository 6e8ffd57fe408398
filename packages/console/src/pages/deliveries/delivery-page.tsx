import { linkOptions, useNavigate, useParams } from '@tanstack/react-router'
import type { DeliveryDetailOut } from '@workflow-service/contract'
import { useEffect } from 'react'
import { useRead } from '../../api/queries.ts'
import { IconButton } from '../../components/button.tsx'
import { Drawer } from '../../components/dialog.tsx'
import { Page, useTitle } from '../../components/page.tsx'
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
    if (!id) return
    void navigate({
      to: '/sources/$sourceId/logs/$deliveryId',
      params: { sourceId, deliveryId: id },
      search: true,
    })
  }
  const close = () => void navigate({ to: '/sources/$sourceId/logs', params: { sourceId }, search: true })
  useEffect(() => {
    const onKeyDown = ({ key, target }: KeyboardEvent) => {
      if (target instanceof HTMLElement && target.matches('input, textarea, select')) return
      if (document.querySelectorAll('dialog[open]').length > 1) return
      if (key === 'k') open(delivery?.newer_id)
      if (key === 'j') open(delivery?.older_id)
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  })
  return (
    <Drawer
      title={titleOf(delivery)}
      onClose={close}
      tools={
        <>
          <IconButton
            icon="up"
            label="Newer (k)"
            disabled={!delivery?.newer_id}
            onClick={() => open(delivery?.newer_id)}
          />
          <IconButton
            icon="down"
            label="Older (j)"
            disabled={!delivery?.older_id}
            onClick={() => open(delivery?.older_id)}
          />
        </>
      }
      actions={delivery && canResend(delivery) ? <ResendButton delivery={delivery} onSent={open} /> : null}
    >
      <Loaded query={query}>{(data) => <DeliveryDetails delivery={data} />}</Loaded>
    </Drawer>
  )
}

/** A delivery as a page: of a run, or found by its id. */
export function DeliveryPage() {
  const { deliveryId } = useParams({ from: '/app/deliveries/$deliveryId' })
  const navigate = useNavigate()
  const query = useRead('getDelivery', { params: { delivery_id: deliveryId } })
  return (
    <Loaded query={query}>
      {(delivery) => (
        <Page
          title={titleOf(delivery)}
          back={
            delivery.source_name
              ? {
                  label: `Logs of ${delivery.source_name}`,
                  link: linkOptions({ to: '/sources/$sourceId/logs', params: { sourceId: delivery.source_id } }),
                }
              : { label: 'Webhook sources', link: linkOptions({ to: '/sources' }) }
          }
          actions={
            <ResendButton
              delivery={delivery}
              onSent={(id) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId: id } })}
            />
          }
        >
          <DeliveryDetails delivery={delivery} />
        </Page>
      )}
    </Loaded>
  )
}
