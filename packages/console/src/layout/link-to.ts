import type { LinkProps } from '@tanstack/react-router'
import type { AppAnswer } from '@workflow-service/contract'

type Found = AppAnswer<'search'>['data'][number]

/** Where a found thing is shown. */
export function linkTo({ kind, id }: Pick<Found, 'kind' | 'id'>): LinkProps {
  switch (kind) {
    case 'workflow':
      return { to: '/workflows/$workflowId', params: { workflowId: id } }
    case 'webhook_source':
      return { to: '/sources/$sourceId', params: { sourceId: id } }
    case 'run':
      return { to: '/runs/$runId', params: { runId: id } }
    case 'session':
      return { to: '/sessions/$sessionId', params: { sessionId: id } }
    case 'delivery':
      return { to: '/deliveries/$deliveryId', params: { deliveryId: id } }
    case 'user':
      return { to: '/people' }
    case 'api_key':
      return { to: '/keys' }
  }
}
