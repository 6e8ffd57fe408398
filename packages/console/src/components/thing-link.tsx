import { Link, type LinkProps } from '@tanstack/react-router'
import type { AppResponseBody } from '@workflow-service/contract'
import type { IconName } from './icons.tsx'
import { shortId } from './values.tsx'

export type Kind = AppResponseBody<'search'>['data'][number]['kind']

/** The icon of each kind of thing, its name, and where it is shown. */
export const THINGS: Record<Kind, readonly [IconName, string, (id: string) => LinkProps]> = {
  workflow: ['workflow', 'Workflow', (id) => ({ to: '/workflows/$workflow_id', params: { workflow_id: id } })],
  webhook_source: ['source', 'Webhook source', (id) => ({ to: '/sources/$source_id', params: { source_id: id } })],
  lookup: ['search', 'Look-up', (id) => ({ to: '/lookups/$lookup_id', params: { lookup_id: id } })],
  run: ['run', 'Run', (id) => ({ to: '/runs/$run_id', params: { run_id: id } })],
  session: ['session', 'Session', (id) => ({ to: '/sessions/$session_id', params: { session_id: id } })],
  delivery: ['send', 'Delivery', (id) => ({ to: '/deliveries/$delivery_id', params: { delivery_id: id } })],
  user: ['people', 'Person', () => ({ to: '/people' })],
  api_key: ['key', 'API key', () => ({ to: '/keys' })],
}

/** Where a thing is shown. */
export const linkTo = (kind: Kind, id: string): LinkProps => THINGS[kind][2](id)
/** The log of a source, or one request in it. */
export const logLink = (sourceId: string, deliveryId?: string) =>
  ({ to: '/deliveries', search: { source_id: sourceId, open: deliveryId } }) as const
/** The page on which a workflow is started. */
export const tryLink = (workflowId: string, search = {}): LinkProps => ({
  to: '/workflows/$workflow_id/try',
  params: { workflow_id: workflowId },
  search,
})

/** A file of a workflow, or its rules, filled in with what a run that was refused lacked. */
export const fileLink = (workflowId: string, search: { file: string } | { run: string }): LinkProps => ({
  to: '/workflows/$workflow_id/files',
  params: { workflow_id: workflowId },
  search,
})

/** A link to a thing: by its name, or else the end of its id. */
export function ThingLink({ kind, id, name }: { kind: Kind; id: string; name?: string | undefined }) {
  return (
    // A session has no name of its own.
    <Link {...linkTo(kind, id)} title={name && kind !== 'session' ? undefined : id}>
      {name ?? shortId(id)}
    </Link>
  )
}
