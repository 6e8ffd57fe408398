import { Link, type LinkProps } from '@tanstack/react-router'
import type { AppAnswer } from '@workflow-service/contract'
import { shortId } from './copy.tsx'

export type Kind = AppAnswer<'search'>['data'][number]['kind']

const LINKS: Record<Kind, (id: string) => LinkProps> = {
  workflow: (id) => ({ to: '/workflows/$workflowId', params: { workflowId: id } }),
  webhook_source: (id) => ({ to: '/sources/$sourceId', params: { sourceId: id } }),
  run: (id) => ({ to: '/runs/$runId', params: { runId: id } }),
  session: (id) => ({ to: '/sessions/$sessionId', params: { sessionId: id } }),
  delivery: (id) => ({ to: '/deliveries/$deliveryId', params: { deliveryId: id } }),
  user: () => ({ to: '/people' }),
  api_key: () => ({ to: '/keys' }),
}

/** Where a thing is shown. */
export const linkTo = (kind: Kind, id: string): LinkProps => LINKS[kind](id)
/** The request in the log of its source. */
export const logLink = (sourceId: string, deliveryId: string): LinkProps => ({
  to: '/sources/$sourceId/logs/$deliveryId',
  params: { sourceId, deliveryId },
})
/** The page on which a workflow is started. */
export const tryLink = (workflowId: string, search = {}): LinkProps => ({
  to: '/workflows/$workflowId/try',
  params: { workflowId },
  search,
})

/** A link to a thing: by its name, or else the end of its id. */
export function ThingLink({ kind, id, name = shortId(id) }: { kind: Kind; id: string; name?: string | undefined }) {
  return <Link {...linkTo(kind, id)}>{name}</Link>
}
