import { useQuery } from '@tanstack/react-query'
import type { AppResponseBody } from '@workflow-service/contract'
import { queryFor, useList } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { Combobox } from '../../components/combobox.tsx'
import { useUserOptions } from '../../components/pickers.tsx'
import { Changes } from '../../components/changes.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { FilterPeriod, linkBeside, useFilter, useFilters, useOpened } from '../../components/filters.tsx'
import { type Kind, linkTo, THINGS } from '../../components/thing-link.tsx'
import { Time } from '../../components/status-and-time.tsx'
import { CopyId, KeyValueList, shortId } from '../../components/values.tsx'

type AuditEvent = AppResponseBody<'listAuditEvents'>['data'][number]

const KINDS = {
  'workflow.': 'Workflows',
  'workflow_users.': 'People of workflows',
  'workflow_agent.': 'Agents of workflows',
  'trigger.': 'Triggers',
  'file.': 'Files',
  'case.': 'Cases',
  'evaluation.': 'Evaluations',
  'auto_run.': 'Schedules',
  'budget.': 'Budgets',
  'webhook_source.': 'Webhook sources',
  'instructions.': 'Instructions',
  'lookup.': 'Look-ups',
  'model_key.': 'Own keys of models',
  'delivery.': 'Deliveries',
  'resend_job.': 'Many sent again',
  'attention.': 'Marked as done',
  'run.': 'Runs',
  'queue.': 'Queued runs',
  'session.': 'Sessions',
  'api_key.': 'API keys',
  'user.': 'People',
  'account.': 'Sign-ins and accounts',
  'setup.': 'Set-up links',
  'link.': 'Accepted links',
  'organization.': 'Organization',
  'notice_webhook.': 'Webhook for notices',
  'access.': 'Refused access',
  'manifest.': 'Manifest',
}

const ACTORS = { person: '', operator: 'Operator (wf)', service: 'The service', stranger: 'Not signed in' } as const

/** `webhook_source.saved` → `Webhook source saved`. */
function actionText(action: string): string {
  const text = action.replaceAll(/[._]/g, ' ').replace('api key', 'API key')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function actorText({ actor }: AuditEvent): string {
  return actor.kind === 'person' ? actor.name : [ACTORS[actor.kind], actor.name].filter(Boolean).join(': ')
}

const FIELDS_SHOWN = 3

function changedText({ changes }: AuditEvent): string {
  const fields = changes.slice(0, FIELDS_SHOWN).map(({ field }) => field)
  const rest = changes.length - fields.length
  return [...fields, ...(rest > 0 ? [`${rest} more`] : [])].join(', ') || '–'
}

export function AuditPage() {
  const filters = useFilters('action', 'actor_id', 'target_id', 'since', 'until')
  const [openId, open] = useOpened('event')
  const list = useList('listAuditEvents', { query: filters })
  const listed = list.rows.find(({ id }) => id === openId)
  // One that the address names may be older than those that are listed.
  const isOlder = openId !== undefined && !listed && !list.isLoading
  const named = useQuery({ ...queryFor('listAuditEvents', { query: { ids: openId ?? '' } }), enabled: isOlder })
  const event = listed ?? (isOlder ? named.data?.data[0] : undefined)
  // Also of a person who has done nothing yet.
  const { actor_id: actorId = '' } = filters
  const isIdle = actorId !== '' && !list.isLoading && list.rows.length === 0
  const person = useQuery({ ...queryFor('search', { query: { q: actorId } }), enabled: isIdle }).data?.data[0]
  const actor = list.rows[0]?.actor.name ?? person?.title ?? shortId(actorId)
  return (
    <ListPage
      title="Audit log"
      intro="Every change, sign-in and refusal, for as long as your operator keeps them. No page changes or deletes an entry."
      label="Audit log"
      list={list}
      filters={filters}
      fields={{
        action: { label: 'What', options: KINDS },
        actor_id: { label: 'Who', text: () => actor },
        target_id: { label: 'On what', text: (id) => list.rows[0]?.target?.name || shortId(id) },
      }}
      controls={
        <>
          <FilterActor name={actor} />
          <FilterPeriod />
        </>
      }
      empty={{ icon: 'audit', title: 'Nothing has happened yet' }}
      rowLink={({ id }) => linkBeside('event', id)}
      columns={[
        { header: 'What', cell: ({ action }) => actionText(action), isShort: true },
        { header: 'On what', cell: ({ target }) => target?.name ?? '–' },
        { header: 'Who', cell: actorText },
        { header: 'Changed', cell: changedText, isSecondary: true },
        { header: 'When', cell: ({ at }) => <Time value={at} />, isNumber: true },
      ]}
    >
      {event ? <EventDrawer event={event} onClose={open} /> : null}
    </ListPage>
  )
}

/** Filters by a person, who may belong to the organization no more: `name` is that of the one that is chosen. */
function FilterActor({ name }: { name: string }) {
  const [value, set] = useFilter('actor_id')
  const { options, ...search } = useUserOptions()
  const isKnown = options.some((option) => option.value === value)
  const chosen = value ? [{ value: '', label: 'Who: all' }, ...(isKnown ? [] : [{ value, label: name }])] : []
  return (
    <Combobox
      label="Who"
      isLabelHidden
      placeholder="Who: all"
      value={value || null}
      onValue={set}
      {...search}
      options={[...chosen, ...options]}
    />
  )
}

function EventDrawer({ event, onClose }: { event: AuditEvent; onClose: () => void }) {
  const { action, actor, at, address, target, request_id: requestId, changes } = event
  const kind = target && target.kind in THINGS ? (target.kind as Kind) : undefined
  return (
    <Dialog className="drawer" title={actionText(action)} onClose={onClose}>
      <KeyValueList
        items={{
          When: <Time value={at} isExact />,
          Who: actorText(event),
          Address: address,
          'On what': target ? `${actionText(target.kind)}: ${target.name}` : null,
          Id: target?.id ? <CopyId id={target.id} /> : null,
          Request: requestId ? <CopyId id={requestId} /> : null,
        }}
      />
      <Changes changes={changes} />
      <div className="actions">
        {target?.id ? (
          <>
            {kind && !action.endsWith('.deleted') ? <Button label="Open it" link={linkTo(kind, target.id)} /> : null}
            <Button label="Everything that happened to it" link={{ to: '/audit', search: { target_id: target.id } }} />
          </>
        ) : null}
        {actor.id ? (
          <Button label="Everything by this person" link={{ to: '/audit', search: { actor_id: actor.id } }} />
        ) : null}
      </div>
    </Dialog>
  )
}
